package builtin

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

func configMap() *resource.Definition {
	d := namespaced[corev1.ConfigMap, corev1.ConfigMapList](corev1.SchemeGroupVersion, "configmaps", "cm")
	d.Validate = check(validateConfigMap)
	d.ValidateUpdate = compare(validateConfigMapUpdate)
	printed(d, func(cm *corev1.ConfigMap, now time.Time) []cell {
		return []cell{
			nameColumn(cm.Name),
			column("Data", "string", corev1.ConfigMap{}.SwaggerDoc()["data"], int64(len(cm.Data)+len(cm.BinaryData))),
			ageColumn(cm.CreationTimestamp, now),
		}
	})
	return d
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/validation.go ValidateConfigMap.
func validateConfigMap(cm *corev1.ConfigMap) (errs field.ErrorList) {
	size := 0
	for _, key := range sortedKeys(cm.Data) {
		path := field.NewPath("data").Key(key)
		errs = append(errs, invalid(path, key, validation.IsConfigMapKey(key))...)
		if _, ok := cm.BinaryData[key]; ok {
			errs = append(errs, field.Invalid(path, key, "duplicate of key present in binaryData"))
		}
		size += len(cm.Data[key])
	}
	for _, key := range sortedKeys(cm.BinaryData) {
		errs = append(errs, invalid(field.NewPath("binaryData").Key(key), key, validation.IsConfigMapKey(key))...)
		size += len(cm.BinaryData[key])
	}
	if size > corev1.MaxSecretSize {
		errs = append(errs, field.TooLong(field.NewPath(""), "", corev1.MaxSecretSize))
	}
	return errs
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/validation.go ValidateConfigMapUpdate.
func validateConfigMapUpdate(cm, old *corev1.ConfigMap) field.ErrorList {
	if old.Immutable == nil || !*old.Immutable {
		return nil
	}
	errs := staysImmutable(cm.Immutable)
	errs = append(errs, unchangedData(cm.Data, old.Data, "data")...)
	return append(errs, unchangedData(cm.BinaryData, old.BinaryData, "binaryData")...)
}

const immutableMessage = "field is immutable when `immutable` is set"

func staysImmutable(flag *bool) field.ErrorList {
	if flag == nil || !*flag {
		return field.ErrorList{field.Forbidden(field.NewPath("immutable"), immutableMessage)}
	}
	return nil
}

func unchangedData[V any](data, old map[string]V, name string) field.ErrorList {
	if len(data)+len(old) == 0 || reflect.DeepEqual(data, old) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath(name), immutableMessage)}
}

// sortedKeys makes the order of errors about a map deterministic.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	return slices.Sorted(maps.Keys(m))
}

func secret() *resource.Definition {
	d := namespaced[corev1.Secret, corev1.SecretList](corev1.SchemeGroupVersion, "secrets")
	d.Default = mutate(defaultSecret)
	d.PrepareUpdate = carry(func(s, old *corev1.Secret) { setDefault(&s.Type, old.Type) })
	d.Validate = check(validateSecret)
	d.ValidateUpdate = compare(validateSecretUpdate)
	d.Fields = selectable(func(s *corev1.Secret) fields.Set { return fields.Set{"type": string(s.Type)} })
	printed(d, func(s *corev1.Secret, now time.Time) []cell {
		doc := corev1.Secret{}.SwaggerDoc()
		return []cell{
			nameColumn(s.Name),
			column("Type", "string", doc["type"], string(s.Type)),
			column("Data", "string", doc["data"], int64(len(s.Data))),
			ageColumn(s.CreationTimestamp, now),
		}
	})
	return d
}

// defaultSecret also merges stringData, which is write-only, into data.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/v1/defaults.go SetDefaults_Secret; conversion.go
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

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/validation.go ValidateSecret.
func validateSecret(s *corev1.Secret) (errs field.ErrorList) {
	path := field.NewPath("data")
	size := 0
	for _, key := range sortedKeys(s.Data) {
		errs = append(errs, invalid(path.Key(key), key, validation.IsConfigMapKey(key))...)
		size += len(s.Data[key])
	}
	if size > corev1.MaxSecretSize {
		errs = append(errs, field.TooLong(path, "", corev1.MaxSecretSize))
	}
	return append(errs, validateSecretType(s, path)...)
}

func validateSecretType(s *corev1.Secret, path *field.Path) field.ErrorList {
	switch s.Type {
	case corev1.SecretTypeServiceAccountToken:
		if s.Annotations[corev1.ServiceAccountNameKey] == "" {
			return field.ErrorList{
				field.Required(field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey), ""),
			}
		}
	case corev1.SecretTypeDockercfg:
		return requireJSON(s, corev1.DockerConfigKey, path)
	case corev1.SecretTypeDockerConfigJson:
		return requireJSON(s, corev1.DockerConfigJsonKey, path)
	case corev1.SecretTypeBasicAuth:
		_, user := s.Data[corev1.BasicAuthUsernameKey]
		_, password := s.Data[corev1.BasicAuthPasswordKey]
		if !user && !password {
			return requireKeys(s, path, corev1.BasicAuthUsernameKey, corev1.BasicAuthPasswordKey)
		}
	case corev1.SecretTypeSSHAuth:
		if len(s.Data[corev1.SSHAuthPrivateKey]) == 0 {
			return field.ErrorList{field.Required(path.Key(corev1.SSHAuthPrivateKey), "")}
		}
	case corev1.SecretTypeTLS:
		return requireKeys(s, path, corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	}
	return nil
}

func requireKeys(s *corev1.Secret, path *field.Path, keys ...string) (errs field.ErrorList) {
	for _, key := range keys {
		if _, ok := s.Data[key]; !ok {
			errs = append(errs, field.Required(path.Key(key), ""))
		}
	}
	return errs
}

func requireJSON(s *corev1.Secret, key string, path *field.Path) field.ErrorList {
	if errs := requireKeys(s, path, key); len(errs) > 0 {
		return errs
	}
	if err := json.Unmarshal(s.Data[key], &map[string]any{}); err != nil {
		return field.ErrorList{field.Invalid(path.Key(key), "<secret contents redacted>", err.Error())}
	}
	return nil
}

// Source: k8s.io/kubernetes v1.37.1 pkg/apis/core/validation/validation.go ValidateSecretUpdate.
func validateSecretUpdate(s, old *corev1.Secret) field.ErrorList {
	errs := immutable(s.Type, old.Type, field.NewPath("type"))
	if old.Immutable != nil && *old.Immutable {
		errs = append(errs, staysImmutable(s.Immutable)...)
		errs = append(errs, unchangedData(s.Data, old.Data, "data")...)
	}
	return errs
}

func serviceAccount() *resource.Definition {
	d := namespaced[corev1.ServiceAccount, corev1.ServiceAccountList](corev1.SchemeGroupVersion,
		"serviceaccounts", "sa")
	d.DeleteReturnsObject = true
	d.ValidateName = apivalidation.ValidateServiceAccountName
	printed(d, func(sa *corev1.ServiceAccount, now time.Time) []cell {
		return []cell{nameColumn(sa.Name), ageColumn(sa.CreationTimestamp, now)}
	})
	return d
}
