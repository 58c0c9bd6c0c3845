#!/usr/bin/env bash
# Builds the image of a node of kind, in the current folder:
#
#	build.sh NAME DEBIAN VERSION IMAGE...
#
# DEBIAN is an image of the file system. The programs are in bin, kind's files for its base image, with those of ours,
# in rootfs. The IMAGEs are for the node's containerd, besides those of Kubernetes VERSION.
set -euo pipefail
name=$1 debian=$2 version=$3
shift 3
mkdir rootfs/kind/images
docker save --output rootfs/kind/images/others.tar "$@"

# The images of Kubernetes do not pass through the engine, where they would take the names of those of the registry.
# Each has one program. That of kube-proxy needs iptables besides.
required=$(bin/kubeadm config images list --kubernetes-version "$version")
sandbox=$(sed -n 's/ *sandbox_image = "\(.*\)"/\1/p' rootfs/etc/containerd/config.toml)
architecture=$(docker image inspect --format '{{.Architecture}}' "$debian")
for image in $required "$sandbox"; do
  program=$(basename "${image%:*}")
  rm -rf files archive
  mkdir -p files/usr/local/bin archive
  cp "bin/$program" files/usr/local/bin/
  if [ "$program" = kube-proxy ]; then
    docker run --rm "$debian" bash -c 'tar -ch /usr/sbin/ip{,6}tables{,-save,-restore} /usr/lib/*/xtables \
      $(ldd /usr/sbin/iptables /usr/lib/*/xtables/* | grep "(0x" | grep -o "/[^ ]*" | sort -u)' | tar -x -C files
  fi
  tar -C files -cf archive/layer.tar .
  cat >archive/config.json <<END
{"architecture": "$architecture", "os": "linux",
 "config": {"Env": ["PATH=/usr/local/bin:/usr/sbin"], "Entrypoint": ["/usr/local/bin/$program"]},
 "rootfs": {"type": "layers", "diff_ids": ["sha256:$(sha256sum archive/layer.tar | cut -d ' ' -f 1)"]}}
END
  echo "[{\"Config\": \"config.json\", \"RepoTags\": [\"$image\"], \"Layers\": [\"layer.tar\"]}]" >archive/manifest.json
  tar -C archive -cf "rootfs/kind/images/${image//\//_}.tar" .
done

mkdir rootfs/usr/bin
cp bin/kubeadm bin/kubectl bin/kubelet rootfs/usr/bin/
printf %s "$version" >rootfs/kind/version
docker build --quiet --tag "$name" --build-arg "DEBIAN=$debian" --file Dockerfile rootfs
