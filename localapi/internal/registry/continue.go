package registry

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// continueToken is the position after a page, in the form that a kube-apiserver uses.
//
// Source: k8s.io/apiserver v0.37.2 pkg/storage/continue.go.
type continueToken struct {
	APIVersion      string `json:"v"`
	ResourceVersion int64  `json:"rv"`    // -1: the present, whatever it is
	StartKey        string `json:"start"` // below the prefix of the list: a token says nothing about tenants
}

const continueVersion = "meta.k8s.io/v1"

// encodeContinue returns the token to continue at key, in a list of the keys that begin with prefix.
func encodeContinue(key, prefix string, revision int64) string {
	b, err := json.Marshal(
		continueToken{
			APIVersion: continueVersion, ResourceVersion: revision,
			StartKey: strings.TrimPrefix(key, prefix),
		},
	)
	if err != nil {
		panic(err) // cannot fail: two strings and a number
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// decodeContinue returns the revision to list (0: the present) and the key to start at. Errors: BadRequest.
func decodeContinue(token, prefix string) (revision int64, start string, err error) {
	invalid := func(format string, args ...any) (int64, string, error) {
		return 0, "",
			apierrors.NewBadRequest("invalid continue token: continue key is not valid: " +
				fmt.Sprintf(format, args...))
	}
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return invalid("%v", err)
	}
	var t continueToken
	if err := json.Unmarshal(b, &t); err != nil {
		return invalid("%v", err)
	}
	key := "/" + strings.TrimPrefix(t.StartKey, "/")
	switch {
	case t.APIVersion != continueVersion:
		return invalid("server does not recognize this encoded version %v", t.APIVersion)
	case t.ResourceVersion == 0:
		return invalid("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
	case t.StartKey == "":
		return invalid("encoded start key empty (version meta.k8s.io/v1)")
	case path.Clean(key) != key: // the key must not leave the prefix
		return invalid("%v", t.StartKey)
	}
	return max(t.ResourceVersion, 0), prefix + key[1:], nil
}

// expiredList returns the error for a list whose revision is compacted. If the list was being continued, the error has
// a token to continue from the present state, for clients that prefer that to starting over.
//
// Source: k8s.io/apiserver v0.37.2 pkg/storage/etcd3/errors.go.
func expiredList(start, prefix string) error {
	if start == "" {
		return apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
	}
	err := apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list " +
		"result. " +
		"You can start a new list without the continue parameter, or use the continue token in this response to " +
		"retrieve " +
		"the remainder of the results. Continuing with the provided token results in an inconsistent list - objects " +
		"that " +
		"were created, modified, or deleted between the time the first chunk was returned and now may show up in the " +
		"list.")
	err.ErrStatus.ListMeta.Continue = encodeContinue(start, prefix, -1)
	return err
}
