"""What stands below each table: how it was measured, and what differs from print."""

import re

_TEXT = """
00
Speed-up is the time of the plain loops on one core over that of the variant, copies included; h264lite's vector
instructions on the same core are 80 times as fast as these loops (see the table of the CPU in paper 004), which flatters
every speed-up here. Every variant's vectors and SADs are those of a plain definition that leaves out the same candidates:
`tests/papers/`, emulated and on a GPU. ~: scaled up from a sample of blocks. Clips: BasketballPass is
416x240 as video 1; which clips and how many pictures the papers took is not in print.

000-I
What differs: a launch and a copy for each of 16384 candidates cost the same then and now, so these rows stay far slower
than the CPU (the host program here is Python). Last column: h264lite's full search on the GPU.

000-II
What differs: whatever leaves border blocks to the CPU is bound by the CPU, as in print, and streams change nothing then.
Once all is on the GPU, today's GPU gains more than 25 times what the GPU in print gained, beside plain loops (vector
instructions on one core gain 94 to 105); what is left is three launches and a copy of 16384 SADs a block, so pinned
memory shows and threads in z do not. Last column: by the larger clip.

000-III
What differs: little. An iteration still is a launch, a copy and a comparison on the host, and the next one waits for it;
no variant beats one core, then or now. Last column: h264lite's step search (16x16, all 41 partitions).

000-IV
Residue: sum of absolute differences of all blocks. What differs: the clip and its number of pictures. As in print, a grid
of 7 or 13 sees more candidates and leaves less residue, the less the faster the motion; threads in z change nothing. The
CPU repeats the picture's edges, the kernels leave out candidates outside the picture.

000-V
Loss = residue of the GPU's search / residue of the CPU's; normalised gain = speed-up / loss. What differs: in print the
GPU's full search, which sees fewer candidates, has the smaller residue (31547531 beside 31547568), so the CPU program
did not choose by the true residue at borders; here it does. The paper's guess that a large clip that gains from the
larger grid might reach a gain of 1 in the step search can be seen in the last row.

001
12 pictures, 4 streams; every 4x4 block about 29x29 candidates of its 32x32 window; 8x4, 4x8 and 8x8 where they begin at
even places. What differs: scenario 2 costs the same as 1, since copies and kernels of different streams overlap in both
(in print only at the ends of its loops): order of submission matters less than it did. The kernel outweighs its copies. A
lock costs the host's round trips: much for small pictures, little for large ones. Copies beside kernels: share of the
time of copies, by the timeline, during which another stream's kernel ran. Last column: h264lite's 41 partitions, +-16,
copies included. The threefold speed-up in print is over another paper's program (Chen and Hang 2008), which is not at
hand.

003-1
+-16. What differs: arrays in local memory are cached in L1 today, so shared memory has no lead any more, and its
reduction needs barriers. All vectors are those of the plain loops: no PSNR is lost or won.

003-2
+-16. What differs: a fetch from a texture is slower than a cached load, here as in print, by more for large pictures. The
PSNR is that of candidates outside the picture and of nothing else: see the table after the next. Texture objects over
pitch-linear memory, point sampling, coordinates clamped: references to textures are gone from CUDA 12 on.

003-3
+-16. What differs: two pictures are little to copy beside the launch and the round trip of small ones, and beside the
kernel of large ones; pinned memory gains 7 to 9 %.

003-why
A full search takes the lowest SAD of its candidates. Whatever memory the samples come from, the same candidates give the
same vectors and the same PSNR, bit for bit (tests/papers/test_memory.py): textures make no codec better. So the
printed 8 dB are the difference of two searches. The candidate that the text itself offers, clamped coordinates, which admit
candidates outside the picture, can give more than 8 dB on a picture made for it (the same test), but hundredths of a dB
on these clips. Leaving the border unsearched in the other program gives tenths to one and a half. Finer vectors come
nearest: one for every 4x4 samples gives 3 to 4 dB, at the two large sizes what is in print. And by the paper's own
formula, PSNR(CPU) - PSNR(GPU), +8.18 is a loss: a search that fails, up to none at all, loses as much. Which of them it
was, the text does not tell.

004-search
The paper prints no figures. Costs and vectors of all four are equal (checked in this run). Without reuse a candidate has
seven times as many samples to subtract. The paper's tiles are for windows that do not fit: +-64 needs 20 KiB, which today
is little, and the whole window is faster. h264lite's kernel: four samples an instruction, windows shifted in advance.

004-refinement
The paper prints no figures. 25 candidates, SAD, all 41 partitions, every sample interpolated from the half-sample planes
anew. Whether in seven streams or in one launch is a question of how well threads are filled; what counts is the work of a
thread: h264lite looks at 17 vectors in two steps, four samples an instruction, and leaves partitions out that cannot win.

004-deblocking
The paper prints no figures. Both give the same samples (checked in this run). The wavefront, one launch with flags, takes
as many dependent steps as the picture is wide and twice as high in macroblocks; a tile needs only its own halo.

004-cpu
+-16, one thread. The plain loops find one vector a macroblock, the others all 41. The paper's vectors are MPSADBW's eight
4x4 SADs in four instructions of 16 bytes; here of 32 or 64.

004-modules
ms a P picture, preset medium, the product's own stages: one thread on the CPU; on the GPU its timeline, entropy coding
on a thread of the CPU. The paper prints no figures. On one core search and refinement take most, and grow with range and
references; on the GPU, at +-16, what has dependencies (mode decision, intra) takes more than the search, and entropy
coding on the CPU, in large pictures, more than all.
"""

NOTES = {name: " ".join(text.split()) for name, text in re.findall(r"^(00\S*)\n(.*?)(?=\n\n|\Z)", _TEXT.strip(), re.M | re.S)}
