package wire

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// ErrorCodecs returns the codecs of REST clients whose callers decode the answers themselves: only errors are decoded
// with them. All clients share them, because they would be a large part of a client's memory.
var ErrorCodecs = sync.OnceValue(func() runtime.NegotiatedSerializer {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return serializer.NewCodecFactory(scheme).WithoutConversion()
})

// StatusOf returns the Status in an answer if that reports a failure; otherwise nil.
func StatusOf(media string, body []byte) *metav1.Status {
	codecs := ErrorCodecs()
	info, known := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), media)
	if !known || len(body) == 0 {
		return nil
	}
	decoder := codecs.DecoderToVersion(info.Serializer, schema.GroupVersion{Version: "v1"})
	obj, _, err := decoder.Decode(body, &schema.GroupVersionKind{Version: "v1"}, nil)
	status, is := obj.(*metav1.Status)
	if err != nil || !is || status.Status != metav1.StatusFailure {
		return nil
	}
	return status
}
