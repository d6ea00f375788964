# Berth in one image: `berth server`, `berth worker`, `berth migrate`. NVIDIA's library is
# found on a machine that has it, by the C library's loader: so cgo, and the same Debian in
# both later stages.
FROM node:20-bookworm-slim AS web
WORKDIR /src/frontend
COPY frontend/package.json frontend/package-lock.json frontend/.npmrc ./
RUN npm ci --no-fund --no-audit
COPY frontend/ ./
COPY api/openapi.yaml /src/api/
COPY examples/digits/sweep.yaml /src/examples/digits/
RUN npm run build

FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
COPY --from=web /src/frontend/dist/ frontend/dist/
# Bound to symbol by symbol: berth starts where that library is missing, or lacks some.
RUN CGO_ENABLED=1 CGO_LDFLAGS='-O2 -g -Wl,-z,lazy' CGO_CFLAGS='-O2 -g -Wno-deprecated-declarations' \
    go build -trimpath -ldflags '-s -w' -o /berth ./cmd/berth

FROM debian:bookworm-slim
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /berth /berth
# For `docker compose exec server berth …`.
RUN ln -s /berth /usr/local/bin/berth
ENTRYPOINT ["/berth"]
