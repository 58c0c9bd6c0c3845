package builtin

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

func configMap() *resource.Definition {
	d := namespaced[corev1.ConfigMap, corev1.ConfigMapList](corev1.SchemeGroupVersion, "configmaps", "cm")
	d.Validate = rules(validateConfigMap)
	d.ValidateUpdate = updateRules(validateConfigMapUpdate)
	listed(d, func(cm *corev1.ConfigMap) []cell {
		return []cell{
			column("Data", "string", corev1.ConfigMap{}.SwaggerDoc()["data"], int64(len(cm.Data)+len(cm.BinaryData))),
		}
	})
	return d
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go ValidateConfigMap.
func validateConfigMap(f verify.Field, cm *corev1.ConfigMap) {
	for _, key := range sortedKeys(cm.Data) {
		at := f.Child("data").Key(key)
		at.Match("", key, validation.IsConfigMapKey)
		_, both := cm.BinaryData[key]
		at.Reject("", both, key, "duplicate of key present in binaryData")
	}
	size := validateData(f.Child("binaryData"), cm.BinaryData)
	for _, value := range cm.Data {
		size += len(value)
	}
	if size > corev1.MaxSecretSize {
		f.Add(field.TooLong(field.NewPath(""), "", corev1.MaxSecretSize))
	}
}

// validateData validates the keys of data, and returns how large it is.
func validateData(f verify.Field, data map[string][]byte) (size int) {
	for _, key := range sortedKeys(data) {
		f.Key(key).Match("", key, validation.IsConfigMapKey)
		size += len(data[key])
	}
	return size
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go ValidateConfigMapUpdate.
func validateConfigMapUpdate(f verify.Field, cm, old *corev1.ConfigMap) {
	if ptr.Deref(old.Immutable, false) {
		staysImmutable(f, cm.Immutable)
		unchangedData(f, "data", cm.Data, old.Data)
		unchangedData(f, "binaryData", cm.BinaryData, old.BinaryData)
	}
}

const immutableMessage = "field is immutable when `immutable` is set"

func staysImmutable(f verify.Field, flag *bool) {
	f.Forbid("immutable", !ptr.Deref(flag, false), immutableMessage)
}

func unchangedData[V any](f verify.Field, name string, data, old map[string]V) {
	f.Forbid(name, len(data)+len(old) > 0 && !reflect.DeepEqual(data, old), immutableMessage)
}

// sortedKeys makes the order of errors about a map deterministic.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}

func secret() *resource.Definition {
	d := namespaced[corev1.Secret, corev1.SecretList](corev1.SchemeGroupVersion, "secrets")
	d.Default = mutate(defaultSecret)
	d.PrepareUpdate = carry(func(s, old *corev1.Secret) { setDefault(&s.Type, old.Type) })
	d.Validate = rules(validateSecret)
	d.ValidateUpdate = updateRules(validateSecretUpdate)
	d.Fields = selectableFields("type")
	listed(d, func(s *corev1.Secret) []cell {
		doc := corev1.Secret{}.SwaggerDoc()
		return []cell{
			column("Type", "string", doc["type"], string(s.Type)),
			column("Data", "string", doc["data"], int64(len(s.Data))),
		}
	})
	return d
}

// defaultSecret also merges stringData, which is write-only, into data.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/v1/defaults.go SetDefaults_Secret; conversion.go
// Convert_v1_Secret_To_core_Secret.
func defaultSecret(s *corev1.Secret) {
	setDefault(&s.Type, corev1.SecretTypeOpaque)
	if len(s.StringData) > 0 && s.Data == nil {
		s.Data = make(map[string][]byte, len(s.StringData))
	}
	for k, v := range s.StringData {
		s.Data[k] = []byte(v)
	}
	s.StringData = nil
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go ValidateSecret.
func validateSecret(f verify.Field, s *corev1.Secret) {
	data := f.Child("data")
	data.Short("", validateData(data, s.Data), corev1.MaxSecretSize)
	has := func(key string) bool { _, ok := s.Data[key]; return ok }
	switch s.Type {
	case corev1.SecretTypeServiceAccountToken:
		f.Child("metadata.annotations").Key(corev1.ServiceAccountNameKey).Require("",
			s.Annotations[corev1.ServiceAccountNameKey] != "", "")
	case corev1.SecretTypeDockercfg:
		requireJSON(data.Key(corev1.DockerConfigKey), s.Data, corev1.DockerConfigKey)
	case corev1.SecretTypeDockerConfigJson:
		requireJSON(data.Key(corev1.DockerConfigJsonKey), s.Data, corev1.DockerConfigJsonKey)
	case corev1.SecretTypeBasicAuth:
		either := has(corev1.BasicAuthUsernameKey) || has(corev1.BasicAuthPasswordKey)
		data.Key(corev1.BasicAuthUsernameKey).Require("", either, "")
		data.Key(corev1.BasicAuthPasswordKey).Require("", either, "")
	case corev1.SecretTypeSSHAuth:
		data.Key(corev1.SSHAuthPrivateKey).Require("", len(s.Data[corev1.SSHAuthPrivateKey]) > 0, "")
	case corev1.SecretTypeTLS:
		data.Key(corev1.TLSCertKey).Require("", has(corev1.TLSCertKey), "")
		data.Key(corev1.TLSPrivateKeyKey).Require("", has(corev1.TLSPrivateKeyKey), "")
	}
}

func requireJSON(f verify.Field, data map[string][]byte, key string) {
	text, ok := data[key]
	if !ok {
		f.Require("", false, "")
	} else if err := json.Unmarshal(text, &map[string]any{}); err != nil {
		f.Reject("", true, "<secret contents redacted>", err.Error())
	}
}

// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/validation/validation.go ValidateSecretUpdate.
func validateSecretUpdate(f verify.Field, s, old *corev1.Secret) {
	f.Immutable("type", s.Type, old.Type)
	if ptr.Deref(old.Immutable, false) {
		staysImmutable(f, s.Immutable)
		unchangedData(f, "data", s.Data, old.Data)
	}
}

func serviceAccount() *resource.Definition {
	d := namespaced[corev1.ServiceAccount, corev1.ServiceAccountList](corev1.SchemeGroupVersion,
		"serviceaccounts", "sa")
	d.DeleteReturnsObject = true
	d.ValidateName = apivalidation.ValidateServiceAccountName
	listed(d, func(*corev1.ServiceAccount) []cell { return nil })
	return d
}
