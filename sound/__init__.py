"""Sound that is stored beside the video: packets of AAC, Opus and FLAC out of files and arrays. Nothing is decoded here."""
