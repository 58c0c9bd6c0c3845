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
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// certificateSigningRequest is only stored: an external signer writes the certificate into the status.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/registry/certificates/certificates/strategy.go.
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
	d.Validate = check(validateSigningRequest)
	d.ValidateStatusUpdate = compare(func(r, old *csr) field.ErrorList {
		return slices.Concat(keepsConditions(r, old), keepsApproval(r, old), validateIssued(r, old))
	})
	d.Fields = selectable(func(r *csr) fields.Set { return fields.Set{"spec.signerName": r.Spec.SignerName} })
	d.Subresources = map[string]resource.Subresource{"approval": approval()}
	printed(d, signingRow)
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
		Validate: func(obj, old runtime.Object) field.ErrorList {
			return append(validateSigningRequest(obj.(*csr)), keepsConditions(obj.(*csr), old.(*csr))...)
		},
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
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/certificates/validation/validation.go validateCertificateSigningRequest.
func validateSigningRequest(r *certificatesv1.CertificateSigningRequest) (errs field.ErrorList) {
	path := field.NewPath("spec")
	if err := checkRequest(r.Spec.Request); err != nil {
		errs = append(errs, field.Invalid(path.Child("request"), r.Spec.Request, err.Error()))
	}
	if len(r.Spec.Usages) == 0 {
		errs = append(errs, field.Required(path.Child("usages"), ""))
	}
	for i, usage := range r.Spec.Usages {
		errs = append(errs, supported(path.Child("usages").Index(i), usage, keyUsages...)...)
	}
	for i, usage := range r.Spec.Usages {
		if slices.Contains(r.Spec.Usages[:i], usage) {
			errs = append(errs, field.Duplicate(path.Child("usages").Index(i), usage))
		}
	}
	errs = append(errs, validateSigner(r.Spec.SignerName, path.Child("signerName"))...)
	if s := r.Spec.ExpirationSeconds; s != nil && *s < 600 {
		errs = append(errs, field.Invalid(path.Child("expirationSeconds"), *s,
			"may not specify a duration less than 600 seconds (10 minutes)"))
	}
	return append(errs, validateDecision(r)...)
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

func validateDecision(r *certificatesv1.CertificateSigningRequest) (errs field.ErrorList) {
	path := field.NewPath("status", "conditions")
	seen := map[certificatesv1.RequestConditionType]bool{}
	for i, c := range r.Status.Conditions {
		at := path.Index(i)
		if c.Type == "" {
			errs = append(errs, field.Required(at.Child("type"), ""))
		}
		allowed := []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionUnknown}
		switch c.Type {
		case certificatesv1.CertificateApproved, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed:
			allowed = []corev1.ConditionStatus{corev1.ConditionTrue}
		}
		errs = append(errs, oneOf(at.Child("status"), c.Status, allowed...)...)
		if seen[c.Type] {
			errs = append(errs, field.Duplicate(at.Child("type"), c.Type))
		}
		seen[c.Type] = true
	}
	if seen[certificatesv1.CertificateApproved] && seen[certificatesv1.CertificateDenied] {
		const approved, denied = `conditions[{"type": "Approved"}]`, `conditions[{"type": "Denied"}]`
		errs = append(errs, field.Invalid(path, "{"+approved+", "+denied+"}",
			fmt.Sprintf("must specify at most one of: `%s`, `%s`", approved, denied)))
	}
	return errs
}

// keepsConditions returns an error if a decision is withdrawn.
func keepsConditions(r, old *certificatesv1.CertificateSigningRequest) (errs field.ErrorList) {
	for _, kind := range append(slices.Clone(decisions), certificatesv1.CertificateFailed) {
		if len(conditionsOf(r, kind)) < len(conditionsOf(old, kind)) {
			errs = append(errs, field.Forbidden(field.NewPath("status", "conditions"),
				fmt.Sprintf("updates may not remove a condition of type %q", kind)))
		}
	}
	return errs
}

// keepsApproval returns an error if there is a new decision.
func keepsApproval(r, old *certificatesv1.CertificateSigningRequest) (errs field.ErrorList) {
	for _, kind := range decisions {
		if len(conditionsOf(r, kind)) > len(conditionsOf(old, kind)) {
			errs = append(errs, field.Forbidden(field.NewPath("status", "conditions"),
				fmt.Sprintf("updates may not add a condition of type %q", kind)))
		}
	}
	return errs
}

// validateIssued validates a status that may have the certificate.
func validateIssued(r, old *certificatesv1.CertificateSigningRequest) field.ErrorList {
	errs := validateDecision(r)
	now, was, path := r.Status.Certificate, old.Status.Certificate, field.NewPath("status", "certificate")
	if bytes.Equal(now, was) {
		return errs
	}
	if err := checkCertificates(now); err != nil {
		errs = append(errs, field.Invalid(path, "<certificate data>", err.Error()))
	}
	if len(was) > 0 {
		errs = append(errs, field.Forbidden(path, "updates may not modify existing certificate content"))
	}
	return errs
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

func signingRow(r *certificatesv1.CertificateSigningRequest, now time.Time) []cell {
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
		nameColumn(r.Name),
		ageColumn(r.CreationTimestamp, now),
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
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/validation.go ValidateSignerName.
func validateSigner(name string, path *field.Path) (errs field.ErrorList) {
	const legacy = "kubernetes.io/legacy-unknown"
	switch name {
	case "":
		return field.ErrorList{field.Required(path, "")}
	case legacy:
		return field.ErrorList{field.Invalid(path, name, "the legacy signerName is not allowed via this API version")}
	}
	domain, rest, ok := strings.Cut(name, "/")
	if !ok || strings.Contains(rest, "/") {
		return field.ErrorList{field.Invalid(path, name,
			"must be a fully qualified domain and path of the form 'example.com/signer-name'")}
	}
	const longestDomain = validation.DNS1123SubdomainMaxLength
	if len(domain) > longestDomain {
		errs = append(errs, field.TooLong(path, "", longestDomain))
	}
	errs = append(errs, validateLabels(domain, validation.IsDNS1123Label, path)...)
	if !strings.Contains(domain, ".") {
		errs = append(errs,
			field.Invalid(path, domain, "should be a domain with at least two segments separated by dots"))
	}
	errs = append(errs, validateLabels(rest, validation.IsDNS1123Subdomain, path)...)
	const longest = 2*longestDomain + validation.DNS1123LabelMaxLength + 2
	if len(name) > longest {
		errs = append(errs, field.TooLong(path, "", longest))
	}
	return errs
}

// validateLabels validates the parts between dots, up to the first invalid one.
func validateLabels(text string, rule func(string) []string, path *field.Path) field.ErrorList {
	for label := range strings.SplitSeq(text, ".") {
		var errs field.ErrorList
		for _, problem := range rule(label) {
			errs = append(errs, field.Invalid(path, text, fmt.Sprintf("validating label %q: %s", label, problem)))
		}
		if len(errs) > 0 {
			return errs
		}
	}
	return nil
}
