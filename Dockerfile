# The verification server, its workers and the command line: one image. See docs/server.md.
FROM python:3.12-slim

# Everybody else's folder is read-only to it; /data holds the server's files, /data/private the
# rows and scores, which compose.yaml gives to workers alone.
RUN useradd --create-home --uid 10001 heldout \
 && mkdir --parents /data/artifacts /data/private /rows \
 && chown --recursive heldout /data \
 && chmod --recursive 0700 /data

WORKDIR /heldout
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN python -m pip install --no-cache-dir --constraint constraints.txt '.[models,postgres,server]'

USER heldout
VOLUME ["/data", "/data/private"]
EXPOSE 8000
ENTRYPOINT ["heldout"]
CMD ["serve", "/data", "--host", "0.0.0.0", "--rows", "/rows"]
