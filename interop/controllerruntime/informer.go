package controllerruntime

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/informer/clientgo"
)

// NewInformer is for [sigs.k8s.io/controller-runtime/pkg/cache.Options].NewInformer. It puts Flyball's informers into
// controller-runtime's own cache. controller-runtime still decides what they list and how objects are decoded;
// [NewCache] replaces that, too.
func NewInformer(lw toolscache.ListerWatcher, example runtime.Object, resync time.Duration,
	indexers toolscache.Indexers,
) toolscache.SharedIndexInformer {
	return clientgo.NewSharedIndexInformer(lw, example, resync, indexers)
}
