"""What the papers print, word by word and figure by figure; nothing here was measured by this project."""

PAPERS = {
    "000": "Rodrigues, Bento, Coimbra: High-Performance Computing Architectures Accelerating a Video Encoder through CUDA",
    "001": "El-Shehaly, Gracanin: Use of CUDA Streams for Block-Based MPEG Motion Estimation on the GPU",
    "003": "Sayadi, Chouchene, Bahri, Khemiri, Atri: CUDA memory optimisation strategies for motion estimation (2018)",
    "004": "Momcilovic, Ilic, Roma, Sousa: Advanced Video Coding on CPUs and GPUs: Parallelization and RD Analysis",
}
HARDWARE = {"000": "not named", "001": "compute capability 2.x", "003": "GeForce GTX480, Core i7-3770", "004": "not named"}

# Paper 000: seconds of video 1, speed-up
TABLE_I = {
    "cpu": (0.983, None), "parallel-sad": (97.644, 0.0101), "resident": (82.564, 0.012), "borders-on-cpu": (18.894, 0.052),
    "parallel-fsbm": (2.163, 0.448),
}  # fmt: skip
# Seconds of videos 1, 2, 3; speed-up of video 3
TABLE_II = {
    "cpu": (0.983, 21.232, 318.128, 1), "parallel-fsbm": (2.163, 7.765, 89.902, 3.539),
    "streams-sad": (1.104, 13.051, 188.017, 1.692), "all-on-gpu": (1.63, 4.561, 39.324, 8.090),
    "streams-result": (1.048, 10.216, 144.444, 2.202), "pinned": (0.3199, 3.335, 37.121, 8.570),
    "threads-in-z": (0.2447, 2.695, 29.828, 10.665),
}  # fmt: skip
TABLE_III = {
    "cpu": (0.0464, 0.818, 11.468, None), "step-3": (1.625, 3.879, 32.109, 0.357), "step-13": (1.550, 3.263, 22.462, 0.511),
    "step-3-z": (0.0851, 1.353, 18.610, 0.6162), "step-7-z": (0.0746, 1.100, 14.023, 0.8178),
    "step-13-z": (0.0736, 1.140, 14.250, 0.8048),
}  # fmt: skip
# Residue of videos 1, 2, 3; loss of video 1
TABLE_IV = {
    "cpu": (5927379, 39866544, 692617109, None), "step-3": (5927379, 39866539, 692617735, 1),
    "step-13": (5160609, 33633200, 681735270, 0.871), "step-3-z": (5927379, 39866539, 692617735, 1),
    "step-7-z": (5814731, 34257434, 691075972, 0.981), "step-13-z": (5160609, 33633200, 681735270, 0.871),
}  # fmt: skip
# Of each video: loss, speed-up, normalised gain
TABLE_V = {
    "threads-in-z": ((1, 4.02, 4.02), (1, 7.88, 7.88), (1, 10.66, 10.66)),
    "step-13-z": ((0.871, 0.630, 0.724), (0.844, 0.718, 0.851), (0.984, 0.805, 0.818)),
}

# Paper 001: time beside scenario 1, on average
SCENARIOS = {"scenario-1": 1.0, "scenario-2": 1.15, "scenario-3": 1.83}

# Paper 003: speed-up, difference of PSNR in dB; table 3: ms, speed-up
SIZES = ("QCIF", "CIF", "HD720p", "HD1080p")
TABLE_1 = {
    "local": ((3.37, -0.02), (5.03, -0.03), (22.54, -0.01), (21.29, -0.03)),
    "shared": ((31.07, -0.01), (21.62, -0.01), (48.04, -0.01), (48.23, -0.02)),
}
TABLE_2 = {
    "shared": ((31.07, -0.01), (21.62, -0.03), (48.04, -0.01), (48.23, -0.02)),
    "texture": ((3.14, 8.18), (8.54, 5.9), (36.327, 2.73), (39.23, 4.45)),
}
TABLE_3 = {
    "shared": ((0.4, 31.07), (2.8, 21.62), (10.84, 48.04), (19.96, 48.23)),
    "pinned": ((0.29, 42.8), (1.58, 38.32), (8.69, 59.93), (18.25, 52.75)),
}
