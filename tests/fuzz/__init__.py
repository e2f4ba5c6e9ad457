"""Fuzzing: seeded cases of hostile input, run in processes of their own, arrays between pages that may not be touched.

campaign.py runs them, from tests/test_fuzz.py and from the command line; a kind of cases is a module named in kinds.py.
"""
