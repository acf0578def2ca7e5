# A model as a service: docker run -p 8080:8080 -v "$PWD/MODEL:/model:ro" micol
FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.13-slim
# The CPU build of torch leaves out gigabytes of CUDA libraries.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
RUN pip install --no-cache-dir "torch>=2.10" --index-url "$TORCH_INDEX"
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir "$(ls /wheels/*.whl)[minilm,serve]" && rm -r /wheels
RUN useradd --create-home --uid 1000 micol
USER micol
WORKDIR /home/micol
# Compiled loops are kept where the user may write.
ENV NUMBA_CACHE_DIR=/home/micol/.cache/numba
EXPOSE 8080
HEALTHCHECK --start-period=60s CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8080/health', timeout=5)"]
ENTRYPOINT ["micol"]
CMD ["serve", "/model", "--host", "0.0.0.0"]
