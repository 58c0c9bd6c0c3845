package builtin

import (
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

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
