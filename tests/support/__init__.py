"""What tests share: plain definitions (naive*.py), clips, streams and their checks, stand-ins, programs that tests run."""
