package envtest

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	documents "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/internal/certs"
	"github.com/flyball-dev/flyball/internal/groupclient"
	"github.com/flyball-dev/flyball/internal/yamlfiles"
)

// WebhookInstallOptions name webhooks to install, and where the suite serves them. Start fills in the fields about
// serving, even if no webhook is named, as the other package does.
type WebhookInstallOptions struct {
	// Paths are files with webhook configurations, and directories of such files. Objects of other kinds are skipped.
	Paths []string

	// MutatingWebhooks and ValidatingWebhooks are webhook configurations. Those in Paths are added. Webhooks of a
	// Service with a path are changed to the URL at which the suite serves them.
	MutatingWebhooks   []*admissionv1.MutatingWebhookConfiguration
	ValidatingWebhooks []*admissionv1.ValidatingWebhookConfiguration

	// IgnoreSchemeConvertible leads the conversion webhooks of all definitions to the suite, whether or not the scheme
	// has convertible types for them.
	IgnoreSchemeConvertible bool

	// IgnoreErrorIfPathMissing skips a missing path.
	IgnoreErrorIfPathMissing bool

	// LocalServingHost and LocalServingPort are where the suite has to serve webhooks: 127.0.0.1 and a free port, if
	// they are empty. LocalServingHostExternalName is the name by which the API server calls it; empty is the host.
	LocalServingHost             string
	LocalServingPort             int
	LocalServingHostExternalName string

	// LocalServingCertDir has the certificate and the key for the suite's webhook server, tls.crt and tls.key.
	// LocalServingCAData is what the API server trusts.
	LocalServingCertDir string
	LocalServingCAData  []byte

	// MaxTime and PollInterval are ignored: a configuration is in effect when it is installed.
	MaxTime      time.Duration
	PollInterval time.Duration
}

// PrepWithoutInstalling makes the certificate, reads the configurations and leads them to the suite.
func (o *WebhookInstallOptions) PrepWithoutInstalling() error {
	if err := o.makeCertificate(); err != nil {
		return fmt.Errorf("make a certificate for webhooks: %w", err)
	}
	if err := o.read(); err != nil {
		return fmt.Errorf("read webhook configurations: %w", err)
	}
	return o.ModifyWebhookDefinitions()
}

// Install creates the configurations, or updates those that exist. It prepares them first, if that has not been done.
func (o *WebhookInstallOptions) Install(config *rest.Config) error {
	if len(o.LocalServingCAData) == 0 {
		if err := o.PrepWithoutInstalling(); err != nil {
			return err
		}
	}
	server, err := groupclient.New(config, admissionv1.SchemeGroupVersion)
	if err != nil {
		return err
	}
	for _, c := range o.MutatingWebhooks {
		if err := ensure(server, "mutatingwebhookconfigurations", c); err != nil {
			return fmt.Errorf("install mutating webhooks %s: %w", c.Name, err)
		}
	}
	for _, c := range o.ValidatingWebhooks {
		if err := ensure(server, "validatingwebhookconfigurations", c); err != nil {
			return fmt.Errorf("install validating webhooks %s: %w", c.Name, err)
		}
	}
	return nil
}

// ensure creates or updates a configuration.
func ensure[T interface {
	runtime.Object
	metav1.Object
}](server rest.Interface, resource string, c T) error {
	ctx, client := context.Background(), groupclient.Resource[T](server, resource, "")
	there, err := client.Get(ctx, c.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		c.SetResourceVersion("")
		_, err = client.Create(ctx, c, metav1.CreateOptions{})
	case err == nil:
		c.SetResourceVersion(there.GetResourceVersion())
		_, err = client.Update(ctx, c, metav1.UpdateOptions{})
	}
	return err
}

// Cleanup removes the certificate.
func (o *WebhookInstallOptions) Cleanup() error {
	if o.LocalServingCertDir == "" {
		return nil
	}
	return os.RemoveAll(o.LocalServingCertDir)
}

// ModifyWebhookDefinitions leads the webhooks to the suite: it sets the certificates to trust, and a URL in the place
// of a Service with a path.
func (o *WebhookInstallOptions) ModifyWebhookDefinitions() error {
	address, err := o.address()
	if err != nil {
		return err
	}
	lead := func(c *admissionv1.WebhookClientConfig) {
		c.CABundle = o.LocalServingCAData
		if c.Service != nil && c.Service.Path != nil {
			url := "https://" + address + "/" + strings.TrimPrefix(*c.Service.Path, "/")
			c.URL, c.Service = &url, nil
		}
	}
	for _, c := range o.MutatingWebhooks {
		for i := range c.Webhooks {
			lead(&c.Webhooks[i].ClientConfig)
		}
	}
	for _, c := range o.ValidatingWebhooks {
		for i := range c.Webhooks {
			lead(&c.Webhooks[i].ClientConfig)
		}
	}
	return nil
}

// address returns where the API server calls the suite. It chooses a port if none is set.
func (o *WebhookInstallOptions) address() (string, error) {
	o.LocalServingHost = cmp.Or(o.LocalServingHost, "127.0.0.1")
	if o.LocalServingPort == 0 {
		l, err := net.Listen("tcp", net.JoinHostPort(o.LocalServingHost, "0"))
		if err != nil {
			return "", fmt.Errorf("find a port for webhooks: %w", err)
		}
		o.LocalServingPort = l.Addr().(*net.TCPAddr).Port
		if err := l.Close(); err != nil {
			return "", err
		}
	}
	host := o.LocalServingHost
	if o.LocalServingHostExternalName != "" {
		host = o.LocalServingHostExternalName
	}
	return net.JoinHostPort(host, strconv.Itoa(o.LocalServingPort)), nil
}

func (o *WebhookInstallOptions) makeCertificate() error {
	authority, err := certs.NewAuthority(7)
	if err != nil {
		return err
	}
	ip, names := net.IPv4(127, 0, 0, 1), []string{}
	for _, host := range []string{o.LocalServingHost, o.LocalServingHostExternalName} {
		if parsed := net.ParseIP(host); parsed != nil {
			ip = parsed
		} else if host != "" {
			names = append(names, host)
		}
	}
	certificate, err := authority.Server(ip, names...)
	if err != nil {
		return err
	}
	key, err := x509.MarshalPKCS8PrivateKey(certificate.PrivateKey)
	if err != nil {
		return err
	}
	if o.LocalServingCertDir, err = os.MkdirTemp("", "flyball-webhooks-"); err != nil {
		return err
	}
	o.LocalServingCAData = authority.PEM()
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]})
	private := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
	return errors.Join(os.WriteFile(filepath.Join(o.LocalServingCertDir, "tls.crt"), public, 0o600),
		os.WriteFile(filepath.Join(o.LocalServingCertDir, "tls.key"), private, 0o600))
}

// read adds the configurations in Paths.
func (o *WebhookInstallOptions) read() error {
	for _, path := range o.Paths {
		files, err := yamlfiles.In(path)
		if errors.Is(err, os.ErrNotExist) && o.IgnoreErrorIfPathMissing {
			continue
		}
		if err != nil {
			return err
		}
		for _, file := range files {
			if err := o.readFile(file); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	return nil
}

func (o *WebhookInstallOptions) readFile(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	reader := documents.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for n := 1; ; n++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		var kind metav1.TypeMeta
		if err == nil {
			err = yaml.Unmarshal(document, &kind)
		}
		var into any
		switch {
		case kind.APIVersion != admissionv1.SchemeGroupVersion.String():
		case kind.Kind == "MutatingWebhookConfiguration":
			c := &admissionv1.MutatingWebhookConfiguration{}
			o.MutatingWebhooks, into = append(o.MutatingWebhooks, c), c
		case kind.Kind == "ValidatingWebhookConfiguration":
			c := &admissionv1.ValidatingWebhookConfiguration{}
			o.ValidatingWebhooks, into = append(o.ValidatingWebhooks, c), c
		}
		if err == nil && into != nil {
			err = yaml.Unmarshal(document, into)
		}
		if err != nil {
			return fmt.Errorf("document %d: %w", n, err)
		}
	}
}

// leadConversions leads the conversion webhooks of definitions to the suite. Those whose types are not convertible in
// the scheme get none, as in the other package: manifests often have one that the suite does not serve.
func (o *WebhookInstallOptions) leadConversions(crds []*apiextensionsv1.CustomResourceDefinition,
	scheme *runtime.Scheme,
) error {
	if len(o.LocalServingCAData) == 0 {
		return nil
	}
	address, err := o.address()
	if err != nil {
		return err
	}
	known := convertible(scheme)
	url := "https://" + address + "/convert"
	for _, d := range crds {
		kind := schema.GroupKind{Group: d.Spec.Group, Kind: d.Spec.Names.Kind}
		switch {
		case d.Spec.PreserveUnknownFields:
		case !known[kind] && !o.IgnoreSchemeConvertible:
			d.Spec.Conversion = nil
		default:
			d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
				Strategy: apiextensionsv1.WebhookConverter,
				Webhook: &apiextensionsv1.WebhookConversion{
					ConversionReviewVersions: []string{"v1", "v1beta1"},
					ClientConfig: &apiextensionsv1.WebhookClientConfig{
						URL: &url, CABundle: o.LocalServingCAData,
					},
				},
			}
		}
	}
	return nil
}

// convertible returns the kinds with a hub version, which has the method Hub, and other versions that convert to it, by
// the method ConvertTo. Both are interfaces of controller-runtime's pkg/conversion.
func convertible(scheme *runtime.Scheme) map[schema.GroupKind]bool {
	hubs, spokes := map[schema.GroupKind]bool{}, map[schema.GroupKind]bool{}
	for gvk, t := range scheme.AllKnownTypes() {
		_, hub := reflect.PointerTo(t).MethodByName("Hub")
		_, spoke := reflect.PointerTo(t).MethodByName("ConvertTo")
		hubs[gvk.GroupKind()] = hubs[gvk.GroupKind()] || hub
		spokes[gvk.GroupKind()] = spokes[gvk.GroupKind()] || spoke
	}
	for kind := range spokes {
		spokes[kind] = spokes[kind] && hubs[kind]
	}
	return spokes
}
