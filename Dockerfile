# A container image with compiled kernels.
#
# docker build -t h264lite .
# For GPUs too, here of compute capability 9.0: docker build --build-arg EXTRAS=cuda-wheels --build-arg ARCH=90 -t h264lite .
FROM python:3.12-slim
ARG EXTRAS="" ARCH=""
# Machine models differ: kernels for each processor with AVX2, not for that of the build
ENV NUMBA_CPU_NAME=x86-64-v3 NUMBA_CPU_FEATURES=+avx2,+bmi,+bmi2,+fma,+f16c,+lzcnt,+movbe,+popcnt
ENV H264LITE_CACHE=/opt/h264lite
COPY . /tmp/h264lite
RUN pip install --no-cache-dir "/tmp/h264lite${EXTRAS:+[$EXTRAS]}" && rm -r /tmp/h264lite \
    && h264lite compile --cpu ${ARCH:+--arch $ARCH} --cache $H264LITE_CACHE
USER nobody
ENTRYPOINT ["h264lite"]
