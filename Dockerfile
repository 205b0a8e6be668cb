# docker build -t tauloop . && docker run --rm -v "$PWD:/work" tauloop check delta
# Not tested: the image was never built where Tauloop is developed.
FROM python:3.13-slim-bookworm

# A compiler for long calculations, and ffmpeg for films as MP4.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ffmpeg gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*

COPY pyproject.toml README.md LICENSE /source/
COPY src /source/src
RUN pip install --no-cache-dir "/source[all]" && rm -rf /source

RUN useradd --create-home user
USER user
WORKDIR /work
# The viewer: docker run --rm -p 8080:8080 tauloop view delta --host 0.0.0.0
EXPOSE 8080
ENTRYPOINT ["tauloop"]
