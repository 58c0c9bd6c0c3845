package deployment

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/dump"
)

// ComputeHash is the pod-template-hash of a template: the label that tells the pods of one ReplicaSet of a Deployment
// from those of the others, and the end of that ReplicaSet's name. The template must not carry the label yet.
//
// It hashes the printed form of the Go struct, so it depends on the fields that the version of k8s.io/api in use
// knows: two builds of a controller may disagree about it. Nothing but names hangs on that, since a ReplicaSet is
// recognised by its template, not by its hash.
//
// collisionCount is the Deployment's status.collisionCount: another number, another hash.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/controller_utils.go, ComputeHash
func ComputeHash(template *corev1.PodTemplateSpec, collisionCount *int32) string {
	hasher := fnv.New32a()
	fmt.Fprintf(hasher, "%v", dump.ForHash(*template))
	if collisionCount != nil {
		// eight bytes for a number of four, the upper half always zero: it is what the real one hashes
		var count [8]byte
		binary.LittleEndian.PutUint32(count[:], uint32(*collisionCount))
		hasher.Write(count[:])
	}
	return rand.SafeEncodeString(fmt.Sprint(hasher.Sum32()))
}

// replicaSetName joins a Deployment's name and a hash. Of a name that would be too long the Deployment's part is cut.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/sync.go, generateReplicaSetName
func replicaSetName(deployment, hash string) string {
	room := validation.DNS1123SubdomainMaxLength - len("-") - len(hash)
	if len(deployment) > room && room > 0 {
		deployment = deployment[:room]
	}
	return deployment + "-" + hash
}
