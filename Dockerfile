# The verification server, its workers and the command line: one image. See docs/server.md.
# Pin it by digest: --build-arg PYTHON_IMAGE=python:3.11-slim@sha256:... (docs/server.md).
ARG PYTHON_IMAGE=python:3.11-slim
FROM ${PYTHON_IMAGE}

# Everybody else's folder is read-only to it; /data holds the server's files, /data/private the
# rows and scores, which compose.yaml gives to workers alone.
RUN useradd --create-home --uid 10001 heldout \
 && mkdir --parents /data/artifacts /data/private /rows \
 && chown --recursive heldout /data \
 && chmod --recursive 0700 /data

WORKDIR /heldout
# Every package is the file whose hash is on record (tools/server_pins.py), and no other.
COPY requirements-server.txt ./
RUN python -m pip install --no-cache-dir --require-hashes --only-binary :all: -r requirements-server.txt
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN python -m pip install --no-cache-dir --no-deps --no-build-isolation .

USER heldout
VOLUME ["/data", "/data/private"]
EXPOSE 8000
ENTRYPOINT ["heldout"]
CMD ["serve", "/data", "--host", "0.0.0.0", "--rows", "/rows"]
