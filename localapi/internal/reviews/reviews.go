package reviews

import (
	"context"
	"errors"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/localapi/internal/rbac"
	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/tokens"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

// Reviewer answers reviews.
type Reviewer struct {
	// Authorizer decides; nil allows everything.
	Authorizer *rbac.Authorizer

	// Tokens are the known bearer tokens.
	Tokens map[string]auth.User

	// Issuer verifies the tokens that the server has issued itself.
	Issuer *tokens.Issuer
}

// Definitions returns the types of reviews.
func (v *Reviewer) Definitions() []*resource.Definition {
	authn, authz := authenticationv1.SchemeGroupVersion, authorizationv1.SchemeGroupVersion
	return []*resource.Definition{
		review(authn, "SelfSubjectReview", false, v.self),
		review(authn, "TokenReview", false, v.token),
		review(authz, "LocalSubjectAccessReview", true, v.local),
		review(authz, "SelfSubjectAccessReview", false, v.selfAccess),
		review(authz, "SelfSubjectRulesReview", false, v.selfRules),
		review(authz, "SubjectAccessReview", false, v.access),
	}
}

// review defines a type *T of reviews.
func review[T any, P interface {
	*T
	runtime.Object
}](gv schema.GroupVersion, kind string, namespaced bool, answer func(context.Context, P) (runtime.Object, error),
) *resource.Definition {
	singular := strings.ToLower(kind)
	return &resource.Definition{
		GroupVersion: gv, Kind: kind, Plural: singular + "s", Singular: singular, Namespaced: namespaced,
		New:     func() runtime.Object { return P(new(T)) },
		NewList: func() runtime.Object { return &metav1.List{} }, // reviews are never listed
		Review:  func(ctx context.Context, obj runtime.Object) (runtime.Object, error) { return answer(ctx, obj.(P)) },
	}
}

// self answers "who am I".
func (v *Reviewer) self(ctx context.Context, r *authenticationv1.SelfSubjectReview) (runtime.Object, error) {
	u, _ := auth.UserFrom(ctx)
	r.CreationTimestamp = metav1.Now().Rfc3339Copy()
	r.Status = authenticationv1.SelfSubjectReviewStatus{UserInfo: info(u)}
	return r, nil
}

func info(u auth.User) authenticationv1.UserInfo {
	i := authenticationv1.UserInfo{Username: u.Name, UID: u.UID, Groups: u.Groups}
	for k, values := range u.Extra {
		if i.Extra == nil {
			i.Extra = map[string]authenticationv1.ExtraValue{}
		}
		i.Extra[k] = values
	}
	return i
}

// token answers "whose token is this".
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/authentication/tokenreview/storage.go.
func (v *Reviewer) token(_ context.Context, r *authenticationv1.TokenReview) (runtime.Object, error) {
	if r.Spec.Token == "" {
		return nil, apierrors.NewBadRequest("token is required for TokenReview in authentication")
	}
	if u, ok := v.Tokens[r.Spec.Token]; ok {
		r.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: info(u.Known())}
		return r, nil
	}
	audiences := r.Spec.Audiences
	if len(audiences) == 0 {
		audiences = []string{tokens.Audience}
	}
	switch u, meant, ok, err := v.Issuer.User(r.Spec.Token, audiences); {
	case !ok:
		r.Status = authenticationv1.TokenReviewStatus{Error: "invalid bearer token"}
	case err != nil:
		r.Status = authenticationv1.TokenReviewStatus{Error: "[invalid bearer token, " + err.Error() + "]"}
	default:
		r.Status = authenticationv1.TokenReviewStatus{Authenticated: true, User: info(u.Known()), Audiences: meant}
	}
	return r, nil
}

// selfAccess answers "may I".
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/authorization/selfsubjectaccessreview/rest.go.
func (v *Reviewer) selfAccess(ctx context.Context, r *authorizationv1.SelfSubjectAccessReview) (runtime.Object, error) {
	if err := validate(func(f verify.Field) {
		exactlyOne(f, r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes)
		empty(f, r.ObjectMeta, "must be empty")
	}); err != nil {
		return nil, err
	}
	u, _ := auth.UserFrom(ctx)
	r.Status = v.decide(u, r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes)
	return r, nil
}

// access answers "may they".
func (v *Reviewer) access(_ context.Context, r *authorizationv1.SubjectAccessReview) (runtime.Object, error) {
	if err := validate(func(f verify.Field) {
		subject(f, r.Spec)
		empty(f, r.ObjectMeta, "must be empty")
	}); err != nil {
		return nil, err
	}
	r.Status = v.decide(user(r.Spec), r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes)
	return r, nil
}

// local answers "may they, in this namespace".
func (v *Reviewer) local(_ context.Context, r *authorizationv1.LocalSubjectAccessReview) (runtime.Object, error) {
	m, resource, other := r.ObjectMeta, r.Spec.ResourceAttributes, r.Spec.NonResourceAttributes
	m.Namespace = ""
	if err := validate(func(f verify.Field) {
		subject(f, r.Spec)
		empty(f, m, "must be empty except for namespace")
		if resource != nil {
			f.Reject("spec.resourceAttributes.namespace", resource.Namespace != r.Namespace, resource.Namespace,
				"must match metadata.namespace")
		}
		f.Reject("spec.nonResourceAttributes", other != nil, other, "disallowed on this kind of request")
	}); err != nil {
		return nil, err
	}
	r.Status = v.decide(user(r.Spec), r.Spec.ResourceAttributes, nil)
	return r, nil
}

// validate returns the error for an invalid review. Like the real server's, it does not name the kind.
func validate(rules func(verify.Field)) error {
	if errs := verify.Errors(nil, rules); len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: authorizationv1.GroupName}, "", errs)
	}
	return nil
}

func user(s authorizationv1.SubjectAccessReviewSpec) auth.User {
	return auth.User{Name: s.User, UID: s.UID, Groups: s.Groups}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/authorization/validation/validation.go ValidateSubjectAccessReviewSpec.
func subject(f verify.Field, s authorizationv1.SubjectAccessReviewSpec) {
	exactlyOne(f, s.ResourceAttributes, s.NonResourceAttributes)
	f.Reject("spec.user", s.User == "" && len(s.Groups) == 0, s.User,
		"at least one of user or group must be specified")
}

func exactlyOne(f verify.Field, r *authorizationv1.ResourceAttributes, n *authorizationv1.NonResourceAttributes) {
	f.Reject("spec", (r == nil) == (n == nil), n,
		"exactly one of nonResourceAttributes or resourceAttributes must be specified")
}

func empty(f verify.Field, m metav1.ObjectMeta, message string) {
	m.ManagedFields = nil
	f.Reject("metadata", !equality.Semantic.DeepEqual(m, metav1.ObjectMeta{}), m, message)
}

func (v *Reviewer) decide(u auth.User, r *authorizationv1.ResourceAttributes,
	n *authorizationv1.NonResourceAttributes,
) authorizationv1.SubjectAccessReviewStatus {
	var a rbac.Attributes
	if r != nil {
		a = rbac.Attributes{
			Verb: r.Verb, Group: r.Group, Resource: r.Resource, Subresource: r.Subresource, Namespace: r.Namespace,
			Name: r.Name,
		}
	} else {
		a = rbac.Attributes{Verb: n.Verb, Path: n.Path, NonResource: true}
	}
	allowed, reason := v.Authorizer.Authorize(u, a)
	return authorizationv1.SubjectAccessReviewStatus{Allowed: allowed, Reason: reason}
}

// selfRules answers "what may I do here".
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/authorization/selfsubjectrulesreview/rest.go.
func (v *Reviewer) selfRules(ctx context.Context, r *authorizationv1.SelfSubjectRulesReview) (runtime.Object, error) {
	if r.Spec.Namespace == "" {
		return nil, apierrors.NewBadRequest("no namespace on request")
	}
	u, ok := auth.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewInternalError(errors.New("no user present on request"))
	}
	rules, err := v.Authorizer.RulesFor(u, r.Spec.Namespace)
	status := authorizationv1.SubjectRulesReviewStatus{
		ResourceRules: []authorizationv1.ResourceRule{}, NonResourceRules: []authorizationv1.NonResourceRule{},
	}
	if err != nil {
		status.EvaluationError = err.Error()
	}
	for _, rule := range rules {
		if len(rule.Resources) > 0 {
			status.ResourceRules = append(status.ResourceRules, authorizationv1.ResourceRule{
				Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources,
				ResourceNames: rule.ResourceNames,
			})
		}
		if len(rule.NonResourceURLs) > 0 {
			status.NonResourceRules = append(status.NonResourceRules, authorizationv1.NonResourceRule{
				Verbs: rule.Verbs, NonResourceURLs: rule.NonResourceURLs,
			})
		}
	}
	answer := &authorizationv1.SelfSubjectRulesReview{TypeMeta: r.TypeMeta, Status: status}
	return answer, nil
}
