# The image of one program: nothing but a static binary, and the certificates of public authorities. make image builds the
# binary and calls docker with a folder that has these two files.
FROM scratch
ARG TITLE
ARG VERSION
ARG REVISION
LABEL org.opencontainers.image.title=$TITLE \
      org.opencontainers.image.version=$VERSION \
      org.opencontainers.image.revision=$REVISION \
      org.opencontainers.image.source=https://github.com/flyball-dev/flyball \
      org.opencontainers.image.licenses=Apache-2.0
COPY ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY program /program
USER 65532:65532
ENTRYPOINT ["/program"]
