package tokens

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// Audience is the audience of a token unless the request names another: this server. It is also the issuer.
const Audience = "https://kubernetes.default.svc.cluster.local"

// Issuer signs tokens. Its methods may be called concurrently.
type Issuer struct {
	// Object returns an object of the core group by its resource, namespace and name. Errors: NotFound.
	Object func(resource, namespace, name string) (metav1.Object, error)

	// ID generates the identity of a token.
	ID func() types.UID

	once sync.Once
	key  ed25519.PrivateKey
	err  error
}

// signingKey generates the key when it is first needed: most servers never sign anything.
func (i *Issuer) signingKey() (ed25519.PrivateKey, error) {
	i.once.Do(func() { _, i.key, i.err = ed25519.GenerateKey(nil) })
	return i.key, i.err
}

var kind = authenticationv1.SchemeGroupVersion.WithKind("TokenRequest")

// Subresource is the subresource token of service accounts.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/core/serviceaccount/storage/token.go.
func (i *Issuer) Subresource() resource.Subresource {
	return resource.Subresource{
		Kind:  kind,
		New:   func() runtime.Object { return &authenticationv1.TokenRequest{} },
		Verbs: []string{"create"},
		Answer: func(_ context.Context, obj, body runtime.Object) (runtime.Object, error) {
			return i.issue(obj.(*corev1.ServiceAccount), body.(*authenticationv1.TokenRequest))
		},
	}
}

// issue answers a request for a token of a service account.
func (i *Issuer) issue(account *corev1.ServiceAccount, r *authenticationv1.TokenRequest) (runtime.Object, error) {
	const defaultSeconds = 60 * 60
	if r.Spec.ExpirationSeconds == nil {
		r.Spec.ExpirationSeconds = ptr.To[int64](defaultSeconds)
	}
	if err := matches(account, r); err != nil {
		return nil, err
	}
	if len(r.Spec.Audiences) == 0 {
		r.Spec.Audiences = []string{Audience}
	}
	now := time.Now()
	r.Name, r.Namespace, r.UID = account.Name, account.Namespace, account.UID
	r.CreationTimestamp = metav1.NewTime(now).Rfc3339Copy()
	r.Status = authenticationv1.TokenRequestStatus{}
	if errs := validate(&r.Spec); len(errs) > 0 {
		return nil, apierrors.NewInvalid(kind.GroupKind(), "", errs)
	}
	bound, err := i.bind(account, r.Spec.BoundObjectRef)
	if err != nil {
		return nil, err
	}
	expires := now.Add(time.Duration(*r.Spec.ExpirationSeconds) * time.Second)
	key, err := i.signingKey()
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("make a key to sign tokens with: %w", err))
	}
	r.Status.ExpirationTimestamp = metav1.NewTime(expires).Rfc3339Copy()
	r.Status.Token, err = sign(claims{
		Audience: r.Spec.Audiences, Expires: expires.Unix(), IssuedAt: now.Unix(), NotBefore: now.Unix(),
		Issuer: Audience,
		ID:     string(i.ID()), Subject: auth.ServiceAccount(account.Namespace, account.Name).Name, Kubernetes: bound,
	}, key)
	return r, err
}

// matches compares the service account that a request describes with the stored one.
func matches(account *corev1.ServiceAccount, r *authenticationv1.TokenRequest) error {
	path := field.NewPath("metadata")
	var errs field.ErrorList
	switch {
	case r.Name != "" && r.Name != account.Name:
		errs = field.ErrorList{
			field.Invalid(path.Child("name"), r.Name, "must match the service account name if specified"),
		}
	case r.Namespace != "" && r.Namespace != account.Namespace:
		errs = field.ErrorList{field.Invalid(path.Child("namespace"), r.Namespace,
			"must match the service account namespace if specified")}
	case r.UID != "" && r.UID != account.UID:
		return apierrors.NewConflict(schema.GroupResource{Group: kind.Group, Resource: kind.Kind}, account.Name,
			fmt.Errorf("the UID in the token request (%s) does not match the UID of the service account (%s)", r.UID,
				account.UID))
	default:
		return nil
	}
	return apierrors.NewInvalid(kind.GroupKind(), account.Name, errs)
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/authentication/validation/validation.go ValidateTokenRequest.
func validate(spec *authenticationv1.TokenRequestSpec) field.ErrorList {
	const shortest, longest = 10 * 60, 1 << 32
	path, seconds := field.NewPath("spec", "expirationSeconds"), *spec.ExpirationSeconds
	switch {
	case seconds < shortest:
		return field.ErrorList{field.Invalid(path, seconds, "may not specify a duration less than 10 minutes")}
	case seconds > longest:
		return field.ErrorList{field.Invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")}
	}
	return nil
}

// bind returns what a token is bound to: the service account, and the object that the request names.
func (i *Issuer) bind(account *corev1.ServiceAccount, to *authenticationv1.BoundObjectReference) (about, error) {
	a := about{Namespace: account.Namespace, ServiceAccount: ref{account.Name, account.UID}}
	if to == nil {
		return a, nil
	}
	gvk := schema.FromAPIVersionAndKind(to.APIVersion, to.Kind)
	var resource, namespace string
	var at **ref
	switch {
	case gvk.Group == "" && gvk.Kind == "Pod":
		resource, namespace, at = "pods", account.Namespace, &a.Pod
	case gvk.Group == "" && gvk.Kind == "Secret":
		resource, namespace, at = "secrets", account.Namespace, &a.Secret
	case gvk.Group == "" && gvk.Kind == "Node":
		resource, at = "nodes", &a.Node
	default:
		return a, apierrors.NewBadRequest(fmt.Sprintf("cannot bind token to object of type %s", gvk.String()))
	}
	obj, err := i.Object(resource, namespace, to.Name)
	if err != nil {
		return a, err
	}
	if pod, ok := obj.(*corev1.Pod); ok {
		if pod.Spec.ServiceAccountName != account.Name {
			return a, apierrors.NewBadRequest(fmt.Sprintf(
				"cannot bind token for serviceaccount %q to pod running with different serviceaccount name.",
				account.Name))
		}
		a.Node = i.nodeOf(pod)
	}
	if to.UID != "" && to.UID != obj.GetUID() {
		return a, apierrors.NewConflict(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, to.Name, fmt.Errorf(
			"the UID in the bound object reference (%s) does not match the UID in record. "+
				"The object might have been deleted and then recreated", to.UID))
	}
	*at = &ref{obj.GetName(), obj.GetUID()}
	return a, nil
}

// nodeOf returns the node of a pod, or nil if it has none. The node has no UID if that is not known.
func (i *Issuer) nodeOf(pod *corev1.Pod) *ref {
	if pod.Spec.NodeName == "" {
		return nil
	}
	n := &ref{Name: pod.Spec.NodeName}
	if node, err := i.Object("nodes", "", n.Name); err == nil {
		n.UID = node.GetUID()
	}
	return n
}

// User returns the user of a token, and which of the audiences the token is for. ok is false for a token that this
// server has not issued. Errors: the reason why a token of this server is invalid.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/serviceaccount/claims.go Validate, jwt.go.
func (i *Issuer) User(token string, audiences []string) (u auth.User, meant []string, ok bool, err error) {
	key, err := i.signingKey()
	if err != nil {
		return u, nil, false, nil
	}
	c, err := verify(token, key.Public().(ed25519.PublicKey))
	if err != nil {
		return u, nil, false, nil
	}
	for _, a := range audiences {
		if slices.Contains(c.Audience, a) {
			meant = append(meant, a)
		}
	}
	switch {
	case len(meant) == 0:
		return u, nil, true,
			fmt.Errorf("token audiences %q is invalid for the target audiences %q", c.Audience, audiences)
	case !time.Now().Before(time.Unix(c.Expires, 0)):
		return u, nil, true, errors.New("service account token has expired")
	}
	if err := i.stillThere(&c.Kubernetes); err != nil {
		return u, nil, true, err
	}
	return user(&c), meant, true, nil
}

// stillThere returns an error if an object that a token is bound to is gone.
func (i *Issuer) stillThere(a *about) error {
	type part struct {
		resource, namespace string
		ref                 *ref
	}
	bound := []part{
		{"serviceaccounts", a.Namespace, &a.ServiceAccount},
		{"secrets", a.Namespace, a.Secret},
		{"pods", a.Namespace, a.Pod},
	}
	if a.Pod == nil { // in a pod's token, the node is only informative
		bound = append(bound, part{"nodes", "", a.Node})
	}
	for _, b := range bound {
		if b.ref == nil {
			continue
		}
		obj, err := i.Object(b.resource, b.namespace, b.ref.Name)
		if err != nil || obj.GetUID() != b.ref.UID {
			return errors.New("service account token has been invalidated")
		}
	}
	return nil
}

// user returns the service account of a token, with the token's information about where it is used.
//
// Source: k8s.io/apiserver v0.37.2 pkg/authentication/serviceaccount/util.go UserInfo.
func user(c *claims) auth.User {
	u := auth.ServiceAccount(c.Kubernetes.Namespace, c.Kubernetes.ServiceAccount.Name)
	u.UID = string(c.Kubernetes.ServiceAccount.UID)
	u.Extra = map[string][]string{"authentication.kubernetes.io/credential-id": {"JTI=" + c.ID}}
	for name, r := range map[string]*ref{"pod": c.Kubernetes.Pod, "node": c.Kubernetes.Node} {
		if r == nil {
			continue
		}
		u.Extra["authentication.kubernetes.io/"+name+"-name"] = []string{r.Name}
		if r.UID != "" {
			u.Extra["authentication.kubernetes.io/"+name+"-uid"] = []string{string(r.UID)}
		}
	}
	return u
}

// claims are the content of a token.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/serviceaccount/claims.go.
type claims struct {
	Audience   []string `json:"aud"`
	Expires    int64    `json:"exp"` // seconds since 1970, as the others
	IssuedAt   int64    `json:"iat"`
	Issuer     string   `json:"iss"`
	ID         string   `json:"jti"`
	NotBefore  int64    `json:"nbf"`
	Subject    string   `json:"sub"`
	Kubernetes about    `json:"kubernetes.io"`
}

// about is what a token is bound to. The token becomes invalid with the first of them.
type about struct {
	Namespace      string `json:"namespace"`
	Node           *ref   `json:"node,omitempty"`
	Pod            *ref   `json:"pod,omitempty"`
	Secret         *ref   `json:"secret,omitempty"`
	ServiceAccount ref    `json:"serviceaccount"`
}

type ref struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
}

// header is the header of all tokens: the way they are signed.
var header = encode([]byte(`{"alg":"EdDSA","typ":"JWT"}`))

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func sign(c claims, key ed25519.PrivateKey) (string, error) {
	payload, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	signed := header + "." + encode(payload)
	return signed + "." + encode(ed25519.Sign(key, []byte(signed))), nil
}

var errNotOurs = errors.New("not a token of this server")

// verify parses and verifies a token. Errors: errNotOurs.
func verify(token string, key ed25519.PublicKey) (claims, error) {
	var c claims
	parts := strings.Split(token, ".")
	if len(parts) != 3 || parts[0] != header {
		return c, errNotOurs
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || !ed25519.Verify(key, []byte(parts[0]+"."+parts[1]), signature) {
		return c, errNotOurs
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(payload, &c) != nil {
		return c, errNotOurs
	}
	return c, nil
}
