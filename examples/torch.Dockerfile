# berth-examples/torch:1 – Debian's PyTorch for CPUs and click, as a user without
# rights. scripts/example-images --all builds it; its packages are byte-compiled.
FROM berth-examples/python:3.11
USER 0:0
RUN apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends python3-torch python3-click >/dev/null \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* \
 && echo 'trial:x:65532:65532::/tmp:/usr/sbin/nologin' >>/etc/passwd \
 && echo 'trial:x:65532:' >>/etc/group
# Debian's own Python first: a base image may have another in /usr/local.
ENV PATH=/usr/bin:/bin \
    PYTHONUNBUFFERED=1
WORKDIR /app
USER 65532:65532
