package rbac

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"reflect"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/localapi/auth"
)

// CheckSigning rejects a write by which a certificate is approved, denied or issued, unless the user may do that for
// its signer: the user needs "approve" or "sign" on the resource "signers" of that name, or of its domain
// ("example.com/*"). It rejects requests for client certificates of members of system:masters from any user. a is the
// request, and old the stored object, or nil if there is none. Objects of other types pass.
//
// Errors: Forbidden.
//
// Source: k8s.io/kubernetes v1.37.1 plugin/pkg/admission/certificates: approval, signing, subjectrestriction.
func (z *Authorizer) CheckSigning(u auth.User, a Attributes, obj, old runtime.Object) error {
	r, ok := obj.(*certificatesv1.CertificateSigningRequest)
	if !ok {
		return nil
	}
	was, _ := old.(*certificatesv1.CertificateSigningRequest)
	var verb string
	switch {
	case was == nil:
		return checkSubject(a, r)
	case a.Subresource == "approval":
		verb = "approve"
	case a.Subresource == "status" && issues(r, was):
		verb = "sign"
	default:
		return nil
	}
	if z.maySign(u, verb, was.Spec.SignerName) {
		return nil
	}
	return signingForbidden(a, r,
		fmt.Errorf("user not permitted to %s requests with signerName %q", verb, was.Spec.SignerName))
}

// issues reports whether a write of the status is one that only a signer may do.
func issues(r, was *certificatesv1.CertificateSigningRequest) bool {
	return !reflect.DeepEqual(r.Status.Certificate, was.Status.Certificate) ||
		!equality.Semantic.DeepEqual(r.Status.Conditions, was.Status.Conditions)
}

// maySign reports whether a user has one of the verbs for signers.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/certauthorization.
func (z *Authorizer) maySign(u auth.User, verb, signer string) bool {
	domain, _, _ := strings.Cut(signer, "/")
	return slices.ContainsFunc([]string{signer, domain + "/*"}, func(name string) bool {
		allowed, _ := z.Authorize(u,
			Attributes{Verb: verb, Group: certificatesv1.GroupName, Resource: "signers", Name: name})
		return allowed
	})
}

// checkSubject checks a new request, which is known to be valid.
func checkSubject(a Attributes, r *certificatesv1.CertificateSigningRequest) error {
	block, _ := pem.Decode(r.Spec.Request)
	if r.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName || block == nil {
		return nil
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	// a user's organizations are its groups
	if err != nil || !slices.Contains(parsed.Subject.Organization, auth.Masters) {
		return err
	}
	return signingForbidden(a, r,
		fmt.Errorf("use of %s signer with %s group is not allowed", r.Spec.SignerName, auth.Masters))
}

func signingForbidden(a Attributes, r *certificatesv1.CertificateSigningRequest, err error) error {
	return apierrors.NewForbidden(schema.GroupResource{Group: a.Group, Resource: a.Resource}, r.Name, err)
}
