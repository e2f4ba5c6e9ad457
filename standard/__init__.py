"""What the H.264 standard says, as data and names; imports nothing of ours."""
