package wire

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
)

// TestOptionsOfDeletions encodes the options of a deletion as clientsets do.
func TestOptionsOfDeletions(t *testing.T) {
	uid, seconds := types.UID("1"), int64(0x2a2a2a)
	for _, media := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), media)
		encoder := scheme.Codecs.EncoderForVersion(info.Serializer, schema.GroupVersion{Version: "v1"})
		for _, c := range []struct {
			options               metav1.DeleteOptions
			preconditioned, isDry bool
		}{
			{metav1.DeleteOptions{GracePeriodSeconds: &seconds}, false, false},
			{metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}, true, false},
			{metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}, false, true},
		} {
			body, err := runtime.Encode(encoder, &c.options)
			if err != nil {
				t.Fatal(err)
			}
			if got := Preconditioned(media, body); got != c.preconditioned {
				t.Errorf("%s, %+v: preconditioned: %v", media, c.options, got)
			}
			if got := DryRun(media, body); got != c.isDry {
				t.Errorf("%s, %+v: a dry run: %v", media, c.options, got)
			}
		}
	}
	if Preconditioned("", nil) || DryRun("", nil) {
		t.Error("no options are a precondition, or a dry run")
	}
}

// TestIdentify: the details of a Status name an object. A field of that name in a custom resource may be anything.
func TestIdentify(t *testing.T) {
	const head = `{"apiVersion":"a/v1","kind":"Ticket","metadata":{"name":"n","uid":"u","resourceVersion":"7"}`
	ticket := Answer{
		APIVersion: "a/v1", Kind: "Ticket", Name: "n", UID: "u", ResourceVersion: "7",
		ContentType: runtime.ContentTypeJSON,
	}
	status := Answer{APIVersion: "v1", Kind: "Status", Name: "n", UID: "u", ContentType: runtime.ContentTypeJSON}
	for body, want := range map[string]Answer{
		head + `}`:                              ticket,
		head + `,"details":"a text"}`:           ticket,
		head + `,"details":{"uid":{"of":"x"}}}`: ticket,
		`{"apiVersion":"v1","kind":"Status","details":{"name":"n","uid":"u"}}`: status,
		`{"apiVersion":"v1","kind":"Status"}`: {
			APIVersion: "v1", Kind: "Status", ContentType: runtime.ContentTypeJSON,
		},
		`<html>`: {},
	} {
		if got := Identify(runtime.ContentTypeJSON, []byte(body)); got != want {
			t.Errorf("%s: %+v, want %+v", body, got, want)
		}
	}
}
