# The image of heteroflow-scheduler: one static binary and the roots of trust.
#
#   docker build -t registry.example/heteroflow-scheduler:0.1.0 --build-arg VERSION=0.1.0 .
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS TARGETARCH VERSION=unknown
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY cmd cmd
COPY pkg pkg
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /heteroflow-scheduler ./cmd/scheduler

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /heteroflow-scheduler /heteroflow-scheduler
USER 65532:65532
ENTRYPOINT ["/heteroflow-scheduler"]
