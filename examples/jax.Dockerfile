# berth-examples/jax:1 – JAX for CPUs beside all that berth-examples/tensorflow:1
# has. scripts/example-images --all builds it; the build context is the directory
# of downloaded wheels, so that the build needs no network.
FROM berth-examples/tensorflow:1 AS build
LABEL berth.stage=build
USER 0:0
COPY *.whl /wheels/
RUN for wheel in /wheels/*.whl; do python3 -m zipfile -e "$wheel" /opt/jax || exit 1; done \
 && python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash /opt/jax

FROM berth-examples/tensorflow:1
COPY --from=build /opt/jax /opt/jax
ENV PYTHONPATH=/opt/jax
