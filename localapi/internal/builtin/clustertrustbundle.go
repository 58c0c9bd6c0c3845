package builtin

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

// clusterTrustBundle is only stored: kubelets mount the certificates.
func clusterTrustBundle() *resource.Definition {
	d := typed[certificatesv1.ClusterTrustBundle, certificatesv1.ClusterTrustBundleList](
		certificatesv1.SchemeGroupVersion, "clustertrustbundles")
	d.NeedsResourceVersion = true
	d.ValidateName = func(name string, prefix bool) []string {
		return apivalidation.NameIsDNSSubdomain(name[strings.LastIndex(name, ":")+1:], prefix)
	}
	d.Validate = rules(func(f verify.Field, b *certificatesv1.ClusterTrustBundle) {
		bundleName(f, b)
		if b.Spec.SignerName != "" {
			validateSigner(f.Child("spec"), b.Spec.SignerName)
		}
		validateTrustBundle(f.Child("spec.trustBundle"), b.Spec.TrustBundle)
	})
	d.ValidateUpdate = fixed(verify.Field.Immutable, "spec.signerName")
	d.Fields = selectableFields("spec.signerName")
	printed(d, func(b *certificatesv1.ClusterTrustBundle, _ time.Time) []cell {
		return []cell{
			nameColumn(b.Name), column("SignerName", "string",
				certificatesv1.ClusterTrustBundleSpec{}.SwaggerDoc()["signerName"], orNone(b.Spec.SignerName)),
		}
	})
	return d
}

// bundleName requires that the name of a bundle begins with its signer.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go ValidateClusterTrustBundleName.
func bundleName(f verify.Field, b *certificatesv1.ClusterTrustBundle) {
	signer := b.Spec.SignerName
	if signer == "" {
		f.Reject("metadata.name", strings.Contains(b.Name, ":"), b.Name,
			"ClusterTrustBundle without signer name must not have \":\" in its name")
		return
	}
	prefix := strings.ReplaceAll(signer, "/", ":") + ":"
	f.Rejectf("metadata.name", !strings.HasPrefix(b.Name, prefix), b.Name,
		"ClusterTrustBundle for signerName %s must be named with prefix %s", signer, prefix)
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/certificates/validation/validation.go validateTrustBundle.
func validateTrustBundle(f verify.Field, text string) {
	const longest, omitted = 1 << 20, "<value omitted>"
	if f.Short("", len(text), longest); len(text) > longest {
		return
	}
	seen := map[string][]int{}
	var order []string
	n, malformed := 0, false
	for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
		problem := anchorProblem(block)
		f.Rejectf("", problem != "", omitted, "entry %d %s", n, problem)
		malformed = malformed || problem != ""
		key := string(block.Bytes)
		if seen[key] == nil {
			order = append(order, key)
		}
		seen[key] = append(seen[key], n)
		n++
	}
	if f.Reject("", n == 0, omitted, "at least one trust anchor must be provided"); malformed {
		return
	}
	for _, key := range order {
		f.Rejectf("", len(seen[key]) > 1, omitted, "duplicate trust anchor (indices %v)", seen[key])
	}
}

// anchorProblem returns why a block is no certificate of an authority, or "".
func anchorProblem(block *pem.Block) string {
	if block.Type != "CERTIFICATE" {
		return "has bad block type: " + block.Type
	}
	if len(block.Headers) > 0 {
		return "has PEM block headers"
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	switch {
	case err != nil:
		return "does not parse as X.509"
	case !certificate.IsCA:
		return "does not have the CA bit set"
	case !certificate.BasicConstraintsValid:
		return "has invalid basic constraints"
	}
	return ""
}

// podCertificateRequest is only stored: a signer answers it for a kubelet. The kind of the key and the status are not
// validated.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/certificates/validation/validation.go ValidatePodCertificateRequestCreate.
func podCertificateRequest() *resource.Definition {
	d := namespaced[certificatesv1.PodCertificateRequest, certificatesv1.PodCertificateRequestList](
		certificatesv1.SchemeGroupVersion, "podcertificaterequests")
	withStatus(d)
	statusKeepsMetadata(d)
	d.NeedsResourceVersion = true
	d.Default = mutate(func(r *certificatesv1.PodCertificateRequest) {
		setDefaultPtr(&r.Spec.MaxExpirationSeconds, 86400)
	})
	d.ValidateCreate = rules(validatePodRequest)
	d.ValidateUpdate = updateRules(func(f verify.Field, r, old *certificatesv1.PodCertificateRequest) {
		if !equality.Semantic.DeepEqual(r.Spec, old.Spec) { // the real server's type also has fields of older versions
			value := bytes.Replace(shown(r.Spec), []byte(`"StubPKCS10Request"`),
				[]byte(`"PKIXPublicKey":null,"ProofOfPossession":null,"StubPKCS10Request"`), 1)
			f.Reject("spec", true, json.RawMessage(value), apivalidation.FieldImmutableErrorMsg)
		}
	})
	d.Fields = selectableFields("spec.signerName", "spec.podName", "spec.nodeName")
	printed(d, podRequestRow)
	return d
}

// shortestLife is how many seconds the certificate of a pod is valid at least. Signers of Kubernetes may make it valid
// for a day, others for 91 days.
const shortestLife int32 = 3600

func longestLife(signer string) int32 {
	const day = 86400
	if domain, _, _ := strings.Cut(signer, "/"); domain == "kubernetes.io" ||
		strings.HasSuffix(domain, ".kubernetes.io") {
		return day
	}
	return 91 * day
}

func validatePodRequest(f verify.Field, r *certificatesv1.PodCertificateRequest) {
	f, spec := f.Child("spec"), &r.Spec
	validateSigner(f, spec.SignerName)
	validateIdentity(f, "pod", spec.PodName, spec.PodUID)
	validateIdentity(f, "serviceAccount", spec.ServiceAccountName, spec.ServiceAccountUID)
	validateIdentity(f, "node", string(spec.NodeName), spec.NodeUID)
	n, most := *spec.MaxExpirationSeconds, longestLife(spec.SignerName)
	f.Rejectf("maxExpirationSeconds", n < shortestLife || n > most, n, "must be in the range [%d, %d]", shortestLife,
		most)
	if len(spec.StubPKCS10Request) == 0 {
		f.Reject("", true, field.OmitValueType{},
			"exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set")
		return
	}
	validateStub(f.Child("stubPKCS10Request"), spec.StubPKCS10Request)
}

func validateIdentity(f verify.Field, kind, name string, uid types.UID) {
	const longest = 128
	f.Match(kind+"Name", name, validation.IsDNS1123Subdomain)
	f.Reject(kind+"UID", uid == "", "", "must not be empty")
	f.Short(kind+"UID", len(uid), longest)
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/certificates/validation/validation.go validateStubPKCS10Request.
func validateStub(f verify.Field, stub []byte) {
	const longest = 10 << 10
	if f.Short("", len(stub), longest); len(stub) > longest {
		return
	}
	request, err := x509.ParseCertificateRequest(stub)
	f.Reject("", err != nil, field.OmitValueType{}, "must be a valid PKCS#10 CSR")
	f.Reject("", err == nil && request.CheckSignature() != nil, field.OmitValueType{}, "invalid signature")
}

func podRequestRow(r *certificatesv1.PodCertificateRequest, _ time.Time) []cell {
	doc, state := certificatesv1.PodCertificateRequestSpec{}.SwaggerDoc(), "Pending"
	final := sets.New(certificatesv1.PodCertificateRequestConditionTypeIssued,
		certificatesv1.PodCertificateRequestConditionTypeDenied,
		certificatesv1.PodCertificateRequestConditionTypeFailed)
	for _, c := range r.Status.Conditions {
		if final.Has(c.Type) {
			state = c.Type
		}
	}
	return []cell{
		nameColumn(r.Name), column("PodName", "string", doc["podName"], r.Spec.PodName),
		column("ServiceAccountName", "string", doc["serviceAccountName"], r.Spec.ServiceAccountName),
		column("NodeName", "string", doc["nodeName"], string(r.Spec.NodeName)),
		column("SignerName", "string", doc["signerName"], r.Spec.SignerName),
		column("State", "string", "Is the request Pending, Issued, Denied, or Failed?", state),
		column("UnverifiedUserAnnotations", "string", doc["unverifiedUserAnnotations"],
			labels.FormatLabels(r.Spec.UnverifiedUserAnnotations)),
	}
}
