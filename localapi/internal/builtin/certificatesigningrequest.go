package builtin

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

// certificateSigningRequest is only stored: an external signer writes the certificate into the status.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/registry/certificates/certificates/strategy.go.
func certificateSigningRequest() *resource.Definition {
	type csr = certificatesv1.CertificateSigningRequest
	d := typed[csr, certificatesv1.CertificateSigningRequestList](certificatesv1.SchemeGroupVersion,
		"certificatesigningrequests", "csr")
	d.HasStatus = true
	d.ValidateName = func(string, bool) []string { return nil }
	d.PrepareCreate = func(ctx context.Context, obj runtime.Object) { prepareSigningRequest(ctx, obj.(*csr)) }
	d.PrepareUpdate = carry(func(r, old *csr) { r.Spec, r.Status = old.Spec, old.Status })
	d.PrepareStatusUpdate = carry(prepareSigningStatus)
	d.StatusResets = []fieldpath.Path{fieldpath.MakePathOrDie("status", "conditions")}
	d.Validate = rules(validateSigningRequest)
	d.ValidateStatusUpdate = updateRules(func(f verify.Field, r, old *csr) {
		keepsConditions(f, r, old)
		keepsApproval(f, r, old)
		validateIssued(f, r, old)
	})
	d.Fields = selectableFields("spec.signerName")
	d.Subresources = map[string]resource.Subresource{"approval": approval()}
	listed(d, signingRow)
	return d
}

// prepareSigningRequest records the requesting user.
func prepareSigningRequest(ctx context.Context, r *certificatesv1.CertificateSigningRequest) {
	u, _ := auth.UserFrom(ctx)
	r.Spec.Username, r.Spec.UID, r.Spec.Groups, r.Spec.Extra = u.Name, u.UID, u.Groups, nil
	for key, values := range u.Extra {
		if r.Spec.Extra == nil {
			r.Spec.Extra = map[string]certificatesv1.ExtraValue{}
		}
		r.Spec.Extra[key] = values
	}
	r.Status = certificatesv1.CertificateSigningRequestStatus{}
}

// prepareSigningStatus restores the decision, which only approvers may write.
func prepareSigningStatus(r, old *certificatesv1.CertificateSigningRequest) {
	r.Spec = old.Spec
	for _, kind := range decisions {
		was := conditionsOf(old, kind)
		if len(was) != len(conditionsOf(r, kind)) {
			continue
		}
		for i, next := range r.Status.Conditions {
			if next.Type == kind {
				r.Status.Conditions[i], was = was[0], was[1:]
			}
		}
	}
	stampConditions(r, old)
}

// decisions are the conditions that only approvers may write.
var decisions = []certificatesv1.RequestConditionType{
	certificatesv1.CertificateApproved,
	certificatesv1.CertificateDenied,
}

// approval is how a request is approved or denied: a write of its conditions.
func approval() resource.Subresource {
	type csr = certificatesv1.CertificateSigningRequest
	return resource.Subresource{
		Kind:    certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest"),
		New:     func() runtime.Object { return &csr{} },
		Verbs:   []string{"get", "patch", "update"},
		Project: func(_ context.Context, obj runtime.Object) (runtime.Object, error) { return obj, nil },
		Merge: func(_ context.Context, obj, sub runtime.Object) error {
			r, asked := obj.(*csr), sub.(*csr)
			old := r.DeepCopy()
			r.Labels, r.Annotations, r.Status.Conditions = asked.Labels, asked.Annotations, asked.Status.Conditions
			stampConditions(r, old)
			return nil
		},
		Owns: fieldpath.NewExcludeSetFilter(fieldpath.NewSet(
			fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("status", "certificate"))),
		Validate: updateRules(func(f verify.Field, r, old *csr) {
			validateSigningRequest(f, r)
			keepsConditions(f, r, old)
		}),
	}
}

// stampConditions sets the times of conditions that have none.
func stampConditions(r, old *certificatesv1.CertificateSigningRequest) {
	now := metav1.Now()
	for i := range r.Status.Conditions {
		c := &r.Status.Conditions[i]
		if c.LastUpdateTime.IsZero() {
			c.LastUpdateTime = now
		}
		if !c.LastTransitionTime.IsZero() {
			continue
		}
		c.LastTransitionTime = now
		for _, was := range conditionsOf(old, c.Type) {
			if was.Status == c.Status && !was.LastTransitionTime.IsZero() {
				c.LastTransitionTime = was.LastTransitionTime
				break
			}
		}
	}
}

func conditionsOf(
	r *certificatesv1.CertificateSigningRequest, kind certificatesv1.RequestConditionType,
) (all []certificatesv1.CertificateSigningRequestCondition) {
	for _, c := range r.Status.Conditions {
		if c.Type == kind {
			all = append(all, c)
		}
	}
	return all
}

// validateSigningRequest validates a whole request.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/certificates/validation/validation.go validateCertificateSigningRequest.
func validateSigningRequest(f verify.Field, r *certificatesv1.CertificateSigningRequest) {
	if err := checkRequest(r.Spec.Request); err != nil {
		f.Reject("spec.request", true, r.Spec.Request, err.Error())
	}
	f.Require("spec.usages", len(r.Spec.Usages) > 0, "")
	verify.Each(f, "spec.usages", r.Spec.Usages, func(f verify.Field, usage *certificatesv1.KeyUsage) {
		verify.Supported(f, "", *usage, keyUsages...)
	})
	seen := sets.New[certificatesv1.KeyUsage]()
	verify.Each(f, "spec.usages", r.Spec.Usages, func(f verify.Field, usage *certificatesv1.KeyUsage) {
		verify.Unique(f, "", seen, *usage)
	})
	validateSigner(f.Child("spec"), r.Spec.SignerName)
	s := r.Spec.ExpirationSeconds
	f.Reject("spec.expirationSeconds", s != nil && *s < 600, s,
		"may not specify a duration less than 600 seconds (10 minutes)")
	validateDecision(f, r)
}

// checkRequest parses a request as PEM and checks that its author has the key.
func checkRequest(text []byte) error {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return errors.New("PEM block type must be CERTIFICATE REQUEST")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return err
	}
	return request.CheckSignature()
}

func validateDecision(f verify.Field, r *certificatesv1.CertificateSigningRequest) {
	seen := sets.New[certificatesv1.RequestConditionType]()
	verify.Each(f, "status.conditions", r.Status.Conditions, func(f verify.Field,
		c *certificatesv1.CertificateSigningRequestCondition,
	) {
		f.Require("type", c.Type != "", "")
		switch c.Type {
		case certificatesv1.CertificateApproved, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed:
			verify.OneOf(f, "status", c.Status, corev1.ConditionTrue)
		default:
			verify.OneOf(f, "status", c.Status, corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionUnknown)
		}
		verify.Unique(f, "type", seen, c.Type)
	})
	const approved, denied = `conditions[{"type": "Approved"}]`, `conditions[{"type": "Denied"}]`
	f.Reject("status.conditions", seen.HasAll(certificatesv1.CertificateApproved, certificatesv1.CertificateDenied),
		"{"+approved+", "+denied+"}", "must specify at most one of: `"+approved+"`, `"+denied+"`")
}

// keepsConditions returns an error if a decision is withdrawn.
func keepsConditions(f verify.Field, r, old *certificatesv1.CertificateSigningRequest) {
	for _, kind := range append(slices.Clone(decisions), certificatesv1.CertificateFailed) {
		f.Forbid("status.conditions", len(conditionsOf(r, kind)) < len(conditionsOf(old, kind)),
			fmt.Sprintf("updates may not remove a condition of type %q", kind))
	}
}

// keepsApproval returns an error if there is a new decision.
func keepsApproval(f verify.Field, r, old *certificatesv1.CertificateSigningRequest) {
	for _, kind := range decisions {
		f.Forbid("status.conditions", len(conditionsOf(r, kind)) > len(conditionsOf(old, kind)),
			fmt.Sprintf("updates may not add a condition of type %q", kind))
	}
}

// validateIssued validates a status that may have the certificate.
func validateIssued(f verify.Field, r, old *certificatesv1.CertificateSigningRequest) {
	validateDecision(f, r)
	now, was := r.Status.Certificate, old.Status.Certificate
	if bytes.Equal(now, was) {
		return
	}
	if err := checkCertificates(now); err != nil {
		f.Reject("status.certificate", true, "<certificate data>", err.Error())
	}
	f.Forbid("status.certificate", len(was) > 0, "updates may not modify existing certificate content")
}

// checkCertificates parses certificates as PEM.
func checkCertificates(text []byte) error {
	found := false
	for len(text) > 0 {
		block, rest := pem.Decode(text)
		switch {
		case block == nil && found:
			return nil
		case block == nil:
			return errors.New("must contain at least one CERTIFICATE PEM block")
		case block.Type != "CERTIFICATE":
			return fmt.Errorf("only CERTIFICATE PEM blocks are allowed, found %q", block.Type)
		case len(block.Headers) > 0:
			return errors.New("no PEM block headers are permitted")
		}
		certificates, err := x509.ParseCertificates(block.Bytes)
		if err != nil {
			return err
		}
		if len(certificates) == 0 {
			return errors.New("found CERTIFICATE PEM block containing 0 certificates")
		}
		found, text = true, rest
	}
	return nil
}

func signingRow(r *certificatesv1.CertificateSigningRequest) []cell {
	requested := "<none>"
	if s := r.Spec.ExpirationSeconds; s != nil {
		requested = duration.HumanDuration(time.Duration(*s) * time.Second)
	}
	has := func(kind certificatesv1.RequestConditionType) bool { return len(conditionsOf(r, kind)) > 0 }
	status := "Pending"
	switch {
	case has(certificatesv1.CertificateDenied):
		status = "Denied"
	case has(certificatesv1.CertificateApproved):
		status = "Approved"
	}
	if has(certificatesv1.CertificateFailed) {
		status += ",Failed"
	}
	if len(r.Status.Certificate) > 0 {
		status += ",Issued"
	}
	spec := certificatesv1.CertificateSigningRequestSpec{}.SwaggerDoc()
	return []cell{
		ageCell,
		column("SignerName", "string", spec["signerName"], orNone(r.Spec.SignerName)),
		column("Requestor", "string", spec["request"], r.Spec.Username),
		column("RequestedDuration", "string", spec["expirationSeconds"], requested),
		column("Condition", "string", certificatesv1.CertificateSigningRequestStatus{}.SwaggerDoc()["conditions"],
			status),
	}
}

// keyUsages are the possible uses of a certificate, sorted.
var keyUsages = slices.Sorted(slices.Values([]certificatesv1.KeyUsage{
	certificatesv1.UsageAny, certificatesv1.UsageCRLSign, certificatesv1.UsageCertSign, certificatesv1.UsageClientAuth,
	certificatesv1.UsageCodeSigning, certificatesv1.UsageContentCommitment, certificatesv1.UsageDataEncipherment,
	certificatesv1.UsageDecipherOnly, certificatesv1.UsageDigitalSignature, certificatesv1.UsageEmailProtection,
	certificatesv1.UsageEncipherOnly, certificatesv1.UsageIPsecEndSystem, certificatesv1.UsageIPsecTunnel,
	certificatesv1.UsageIPsecUser, certificatesv1.UsageKeyAgreement, certificatesv1.UsageKeyEncipherment,
	certificatesv1.UsageMicrosoftSGC, certificatesv1.UsageNetscapeSGC, certificatesv1.UsageOCSPSigning,
	certificatesv1.UsageSMIME,
	certificatesv1.UsageServerAuth, certificatesv1.UsageSigning, certificatesv1.UsageTimestamping,
}))

// validateSigner requires a name like "example.com/signer".
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go ValidateSignerName.
func validateSigner(f verify.Field, name string) {
	f = f.Child("signerName")
	domain, rest, ok := strings.Cut(name, "/")
	switch {
	case name == "":
		f.Require("", false, "")
		return
	case name == "kubernetes.io/legacy-unknown":
		f.Reject("", true, name, "the legacy signerName is not allowed via this API version")
		return
	case !ok || strings.Contains(rest, "/"):
		f.Reject("", true, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'")
		return
	}
	const longestDomain = validation.DNS1123SubdomainMaxLength
	f.Short("", len(domain), longestDomain)
	validateParts(f, domain, validation.IsDNS1123Label)
	f.Reject("", !strings.Contains(domain, "."), domain,
		"should be a domain with at least two segments separated by dots")
	validateParts(f, rest, validation.IsDNS1123Subdomain)
	f.Short("", len(name), 2*longestDomain+validation.DNS1123LabelMaxLength+2)
}

// validateParts validates the parts between dots, up to the first invalid one.
func validateParts(f verify.Field, text string, rule func(string) []string) {
	for part := range strings.SplitSeq(text, ".") {
		problems := rule(part)
		for _, problem := range problems {
			f.Rejectf("", true, text, "validating label %q: %s", part, problem)
		}
		if len(problems) > 0 {
			return
		}
	}
}
