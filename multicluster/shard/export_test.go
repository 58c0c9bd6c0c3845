package shard

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PartOf is the part of an object that is split by UID.
func PartOf(obj metav1.Object, of int) int { return indexOf(string(obj.GetUID()), of) }
