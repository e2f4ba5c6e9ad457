"""MP4 files with one H.264 video track: written and read (ISO/IEC 14496-12, 14496-15)."""
