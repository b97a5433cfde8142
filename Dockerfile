# The service as a container: non-root, writes only to /tmp, a single process tree.
# For reproducible builds, pin the base images by digest: python:3.11-slim-bookworm@sha256:…
FROM python:3.11-slim-bookworm AS build
WORKDIR /app
# Installed with the base image's pip, which keeps pip and an outdated setuptools out of the image.
RUN python -m venv --without-pip /venv
# Extras such as "sso s3"; the package list of an extra includes requirements.txt.
ARG EXTRAS=""
COPY requirements.txt requirements-kubernetes.txt requirements-otel.txt requirements-s3.txt requirements-sso.txt ./
RUN for extra in "" $EXTRAS; do pip --python /venv/bin/python install --no-cache-dir --only-binary :all: \
    --require-hashes -r "requirements${extra:+-$extra}.txt" || exit; done

FROM python:3.11-slim-bookworm AS agent-build
WORKDIR /app
RUN python -m venv --without-pip /venv
COPY requirements-agent.txt .
RUN pip --python /venv/bin/python install --no-cache-dir --only-binary :all: --require-hashes -r requirements-agent.txt

# The documentation, which the service serves at /docs/.
FROM python:3.11-slim-bookworm AS docs
WORKDIR /app
RUN python -m venv --without-pip /venv
COPY requirements-docs.txt .
RUN pip --python /venv/bin/python install --no-cache-dir --only-binary :all: --require-hashes -r requirements-docs.txt
COPY mkdocs.yml README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md Dockerfile compose.yaml ./
COPY docs docs
COPY deploy deploy
COPY tools/site tools/site
RUN /venv/bin/python -m tools.site

# The agent (docker build --target agent) reports the workloads of its cluster.
FROM python:3.11-slim-bookworm AS agent
COPY --from=agent-build /venv /venv
WORKDIR /app
COPY manage.py ./
COPY infra_service infra_service
COPY workloads workloads
RUN /venv/bin/python -m compileall -q . && useradd --uid 10001 --no-create-home --no-log-init --shell /usr/sbin/nologin infra
USER 10001
# Return the memory of large lists at once. A single heap is enough, because threads mostly wait.
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 MALLOC_ARENA_MAX=1 \
    MALLOC_MMAP_THRESHOLD_=131072 MALLOC_TRIM_THRESHOLD_=131072
STOPSIGNAL SIGTERM
ENTRYPOINT ["python", "manage.py", "sync_workloads", "--in-cluster", "--watch", "--json"]

FROM python:3.11-slim-bookworm AS service
# The same path as in the build, because the environment's scripts contain it.
COPY --from=build /venv /venv
WORKDIR /app
COPY manage.py ./
COPY infra_service infra_service
COPY apikeys apikeys
COPY states states
COPY workloads workloads
COPY filterlang filterlang
COPY --from=docs /app/site site
RUN /venv/bin/python -m compileall -q . && useradd --uid 10001 --no-create-home --no-log-init --shell /usr/sbin/nologin infra \
    && install -d -m 700 -o infra -g infra /var/lib/infra-archive
USER 10001
# Settings and secrets come from the environment; the image contains no secrets.
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 VAR_DIR=/tmp BIND=0.0.0.0:8000
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s CMD ["python", "-c", \
    "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/healthz', timeout=2)"]
STOPSIGNAL SIGTERM
CMD ["gunicorn", "-c", "python:infra_service.gunicorn", "infra_service.wsgi"]
