package shard

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/sharding"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/multicluster"
)

// The fields that objects can be split by: those that servers support for shards.
//
// Source: KEP-5866, k8s.io/apimachinery v0.37.2 pkg/sharding.
const (
	byUID       = "object.metadata.uid"
	byNamespace = "object.metadata.namespace"
)

func (s *Objects) field() string {
	if s.options.ByNamespace {
		return byNamespace
	}
	return byUID
}

// Part is one of the parts that objects are split into, while this replica serves it. [PartInformer] shows its objects
// and no others.
type Part struct {
	// Index is the number of the part, from 0; Of is the number of parts.
	Index, Of int
	field     string
	tenure    multicluster.Tenure
}

// Check returns nil while a write may begin; see [multicluster.Tenure].
func (p *Part) Check() error { return p.tenure.Check() }

// Selector returns the server's shard selector for the part: a range of the hashes of one field.
func (p *Part) Selector() string { return p.selector().String() }

func (p *Part) selector() sharding.Selector {
	from, after := "0x"+hex64(firstOf(p.Index, p.Of)), "0x1"+hex64(0) // 2^64
	if p.Index < p.Of-1 {
		after = "0x" + hex64(firstOf(p.Index+1, p.Of))
	}
	return sharding.NewSelector(sharding.ShardRangeRequirement{Key: p.field, Start: from, End: after})
}

func hex64(n uint64) string { return fmt.Sprintf("%016x", n) }

// firstOf returns the start of the index-th of equal ranges of 64 bits.
func firstOf(index, of int) uint64 {
	first, rest := bits.Div64(uint64(index), 0, uint64(of)) // index < of, so the quotient fits
	if rest > 0 {
		first++
	}
	return first
}

// The constants of 64-bit FNV-1a, with which servers hash fields.
//
// Source: HashField of k8s.io/apimachinery v0.37.2 pkg/sharding.
const (
	fnvOffset uint64 = 14695981039346656037
	fnvPrime  uint64 = 1099511628211
)

// indexOf returns the part that a value of the field belongs to.
func indexOf(value string, of int) int {
	hash := fnvOffset
	for i := range len(value) {
		hash = (hash ^ uint64(value[i])) * fnvPrime
	}
	index, _ := bits.Mul64(hash, uint64(of))
	return int(index)
}

// Matches reports whether an object belongs to the part. It hashes as servers do.
func (p *Part) Matches(obj metav1.Object) bool {
	if p.field == byNamespace {
		return indexOf(obj.GetNamespace(), p.Of) == p.Index
	}
	return indexOf(string(obj.GetUID()), p.Of) == p.Index
}

// PartInformer returns an informer that shows only the objects of a part, and a function that releases it. If the
// server supports shards, it sends only these objects, and only they are cached. Otherwise all parts share one cache of
// all objects, and each sees its own. PartInformer waits until the server has shown which of the two it is, so the
// factory must be running. [informer.Informer.Stats] are those of the cache.
//
// Errors: those of informer.ForOptions; the end of ctx.
func PartInformer[T informer.Object](ctx context.Context, f *informer.Factory, p *Part,
	o informer.InformerOptions,
) (inf informer.Informer[T], release func(), err error) {
	o.ShardSelector = p.Selector()
	if inf, err = informer.ForOptions[T](f, o); err != nil {
		return nil, nil, err
	}
	release = func() { informer.Release(inf) }
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for !inf.HasSynced() {
		if errors.Is(inf.Health().Err, listwatch.ErrNotSharded) {
			release()
			o.ShardSelector = ""
			all, err := informer.ForOptions[T](f, o)
			if err != nil {
				return nil, nil, err
			}
			return &view[T]{all, p}, func() { informer.Release(all) }, nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			release()
			return nil, nil, context.Cause(ctx)
		}
	}
	return inf, release, nil
}

// pollInterval is the interval at which PartInformer checks whether the server supports shards.
const pollInterval = 50 * time.Millisecond
