package envtest

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/wait"
	documents "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/internal/yamlfiles"
)

// CRDInstallOptions select the definitions of custom resources to install, and how to install them.
type CRDInstallOptions struct {
	// Scheme has the types that the suite's conversion webhook converts. Nil is client-go's.
	Scheme *runtime.Scheme

	// Paths are files with definitions, in YAML or JSON, and directories of such files. Subdirectories are not read;
	// objects of other kinds are skipped.
	Paths []string

	// CRDs are definitions to install.
	CRDs []*apiextensionsv1.CustomResourceDefinition

	// ErrorIfPathMissing makes a missing path an error. Otherwise it is skipped.
	ErrorIfPathMissing bool

	// MaxTime is how long to wait until the definitions are in effect. 0 is 10 seconds.
	MaxTime time.Duration

	// PollInterval is how often to check meanwhile. 0 is 100 ms.
	PollInterval time.Duration

	// CleanUpAfterUse makes Stop remove the definitions.
	CleanUpAfterUse bool

	// WebhookOptions say where the suite serves conversion webhooks. Start sets them to the environment's.
	WebhookOptions WebhookInstallOptions
}

// InstallCRDs reads the definitions, creates or updates them, and waits until they are in effect. It returns them as
// the server stores them.
func InstallCRDs(config *rest.Config, o CRDInstallOptions) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	if err := ReadCRDFiles(&o); err != nil {
		return nil, fmt.Errorf("read definitions: %w", err)
	}
	o.Scheme = cmp.Or(o.Scheme, clientscheme.Scheme)
	if err := o.WebhookOptions.leadConversions(o.CRDs, o.Scheme); err != nil {
		return nil, err
	}
	if err := CreateCRDs(config, o.CRDs); err != nil {
		return o.CRDs, err
	}
	if err := WaitForCRDs(config, o.CRDs, o); err != nil {
		return o.CRDs, fmt.Errorf("wait for definitions to be in effect: %w", err)
	}
	return o.CRDs, nil
}

// ReadCRDFiles reads the definitions in Paths and adds them to CRDs. If several definitions have one name, the last one
// counts.
func ReadCRDFiles(o *CRDInstallOptions) error {
	for _, path := range o.Paths {
		files, err := yamlfiles.In(path)
		if errors.Is(err, os.ErrNotExist) && !o.ErrorIfPathMissing {
			continue
		}
		if err != nil {
			return err
		}
		for _, file := range files {
			read, err := readFile(file)
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			o.CRDs = append(o.CRDs, read...)
		}
	}
	last := map[string]int{}
	for i, d := range o.CRDs {
		last[d.Name] = i
	}
	var unique []*apiextensionsv1.CustomResourceDefinition
	for i, d := range o.CRDs {
		if last[d.Name] == i {
			unique = append(unique, d)
		}
	}
	o.CRDs = unique
	return nil
}

// readFile returns the definitions in a file. It skips objects of other kinds without decoding them, since files beside
// definitions may be meant for other programs.
func readFile(name string) (all []*apiextensionsv1.CustomResourceDefinition, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	reader := documents.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for n := 1; ; n++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		var kind metav1.TypeMeta
		if err == nil {
			err = yaml.Unmarshal(document, &kind)
		}
		d := &apiextensionsv1.CustomResourceDefinition{}
		if err == nil && kind.Kind == "CustomResourceDefinition" {
			err = yaml.Unmarshal(document, d)
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", n, err)
		}
		if d.Spec.Group != "" && d.Spec.Names.Kind != "" {
			all = append(all, d)
		}
	}
}

// CreateCRDs creates definitions, or updates those that exist. It replaces each by what the server stored.
func CreateCRDs(config *rest.Config, crds []*apiextensionsv1.CustomResourceDefinition) error {
	c, err := clientOf(config)
	if err != nil {
		return err
	}
	for _, d := range crds {
		if err := put(context.Background(), c, d); err != nil {
			return fmt.Errorf("install definition %s: %w", d.Name, err)
		}
	}
	return nil
}

// put creates or updates one definition.
func put(ctx context.Context, c rest.Interface, d *apiextensionsv1.CustomResourceDefinition) error {
	d.ResourceVersion = ""
	err := c.Post().Resource(plural).Body(d).Do(ctx).Into(d)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var there apiextensionsv1.CustomResourceDefinition
		if err := c.Get().Resource(plural).Name(d.Name).Do(ctx).Into(&there); err != nil {
			return err
		}
		d.ResourceVersion = there.ResourceVersion
		return c.Put().Resource(plural).Name(d.Name).Body(d).Do(ctx).Into(d)
	})
}

// WaitForCRDs waits until discovery shows the definitions.
func WaitForCRDs(config *rest.Config, crds []*apiextensionsv1.CustomResourceDefinition, o CRDInstallOptions) error {
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	var missing string
	err = wait.PollUntilContextTimeout(context.Background(), cmp.Or(o.PollInterval, 100*time.Millisecond),
		cmp.Or(o.MaxTime, 10*time.Second), true, func(context.Context) (bool, error) {
			missing = missingFrom(d, crds)
			return missing == "", nil
		})
	if err != nil {
		return fmt.Errorf("%s is not served: %w", missing, err)
	}
	return nil
}

// missingFrom names a resource that is defined but not served, or returns "" if there is none.
func missingFrom(d discovery.DiscoveryInterface, crds []*apiextensionsv1.CustomResourceDefinition) string {
	served := map[string]*metav1.APIResourceList{} // by group and version; nil: not served
	for _, crd := range crds {
		for _, v := range crd.Spec.Versions {
			if !v.Served {
				continue
			}
			version := schema.GroupVersion{Group: crd.Spec.Group, Version: v.Name}.String()
			if _, asked := served[version]; !asked {
				served[version], _ = d.ServerResourcesForGroupVersion(version) // the next poll retries after any error
			}
			named := func(r metav1.APIResource) bool { return r.Name == crd.Spec.Names.Plural }
			if list := served[version]; list == nil || !slices.ContainsFunc(list.APIResources, named) {
				return crd.Spec.Names.Plural + " in " + version
			}
		}
	}
	return ""
}

// UninstallCRDs deletes the definitions, and with them their objects. A missing definition is not an error.
func UninstallCRDs(config *rest.Config, o CRDInstallOptions) error {
	if err := ReadCRDFiles(&o); err != nil {
		return fmt.Errorf("read definitions: %w", err)
	}
	c, err := clientOf(config)
	if err != nil {
		return err
	}
	for _, d := range o.CRDs {
		err := c.Delete().Resource(plural).Name(d.Name).Do(context.Background()).Error()
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete definition %s: %w", d.Name, err)
		}
	}
	return nil
}

const plural = "customresourcedefinitions"

func clientOf(config *rest.Config) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	c := rest.CopyConfig(config)
	c.APIPath, c.GroupVersion = "/apis", &apiextensionsv1.SchemeGroupVersion
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.RESTClientFor(c)
}
