package controllerruntime

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/informer/clientgo"
)

// NewInformer is for [sigs.k8s.io/controller-runtime/pkg/cache.Options].NewInformer: Flyball's informers inside
// controller-runtime's own cache. What they list and how that is decoded stays controller-runtime's; [NewCache]
// replaces that, too.
func NewInformer(lw toolscache.ListerWatcher, example runtime.Object, resync time.Duration,
	indexers toolscache.Indexers,
) toolscache.SharedIndexInformer {
	return clientgo.NewSharedIndexInformer(lw, example, resync, indexers)
}
