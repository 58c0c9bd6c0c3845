package scaffold

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const deploymentPath = "config/manager/manager.yaml"

// moveDeployment makes the Deployment of a project of kubebuilder what the manager of its new cmd/main.go needs: probes
// by TLS, and the namespace of the lease. What it cannot do is listed.
func moveDeployment(c *change) error {
	main, _, err := c.read("cmd/main.go")
	if err != nil {
		return err
	}
	insecure, err := servesPlainly(c)
	if err != nil {
		return err
	}
	old, _, err := c.read(deploymentPath)
	if err != nil {
		return err
	}
	e := yamlEdit{}
	needed := bytes.Contains(main, []byte(`os.Getenv("POD_NAMESPACE")`))
	container := managerContainer(old)
	switch {
	case container == nil:
		if needed {
			c.notes = append(c.notes, fmt.Sprintf("%s has no Deployment with a container manager: set POD_NAMESPACE "+
				"to the namespace of the Pod yourself, in which the manager keeps its lease", deploymentPath))
		}
		return nil
	case needed && !e.setNamespace(container):
		c.notes = append(c.notes, deploymentPath+": the form of env is not known here: set POD_NAMESPACE to the "+
			"namespace of the Pod yourself, in which the manager keeps its lease")
	}
	tls := bytes.Contains(main, []byte("manager.Serving{")) && !insecure
	for _, probe := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
		get := child(child(container, probe), "httpGet")
		if get == nil || !slices.Contains([]string{"/healthz", "/readyz"}, scalar(get, "path")) {
			continue
		}
		if scheme := scalar(get, "scheme"); scheme == "HTTPS" || scheme == "" && tls && e.setHTTPS(get) {
			continue
		}
		c.notes = append(c.notes, fmt.Sprintf("%s: %s is left as it is: it needs scheme: HTTPS where the manager "+
			"serves metrics by TLS, as it then serves health by TLS too", deploymentPath, probe))
	}
	c.write(deploymentPath, old, e.apply(old))
	return nil
}

// servesPlainly reports whether manifests turn off TLS.
func servesPlainly(c *change) (plain bool, err error) {
	err = c.walk(func(path string) error {
		if !strings.HasPrefix(path, "config/manager/") && !strings.HasPrefix(path, "config/default/") {
			return nil
		}
		text, _, err := c.read(path)
		plain = plain || bytes.Contains(text, []byte("--metrics-secure=false"))
		return err
	})
	return plain, err
}

// managerContainer returns the container of the manager in a Deployment, or nil.
func managerContainer(text []byte) (container *yaml.Node) {
	eachNode(text, func(document, n *yaml.Node) {
		if scalar(document, "kind") == "Deployment" && scalar(n, "name") == "manager" && child(n, "image") != nil {
			container = cmp.Or(container, n)
		}
	})
	return container
}

// eachNode calls f for all nodes of a manifest, with the document that they are in. A file that is not YAML, such as a
// template, has none.
func eachNode(text []byte, f func(document, n *yaml.Node)) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for file := (yaml.Node{}); decoder.Decode(&file) == nil; file = (yaml.Node{}) {
		for all := file.Content; len(all) > 0; all = append(all[1:], all[0].Content...) {
			f(file.Content[0], all[0])
		}
	}
}

// child returns the value of a key of a mapping, or nil.
func child(node *yaml.Node, key string) *yaml.Node {
	if node == nil || node.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i+1]
		}
	}
	return nil
}

// scalar returns the value of a key of a mapping, or "".
func scalar(node *yaml.Node, key string) string {
	if value := child(node, key); value != nil && value.Kind == yaml.ScalarNode {
		return value.Value
	}
	return ""
}

// yamlEdit inserts lines into a file, which otherwise stays as it is, with its comments.
type yamlEdit struct {
	after map[int]string // by the number of the line after which they are inserted, from 1
}

func (e *yamlEdit) insert(after, column int, lines ...string) {
	if e.after == nil {
		e.after = map[int]string{}
	}
	for _, line := range lines {
		e.after[after] += strings.Repeat(" ", column-1) + line + "\n"
	}
}

func (e *yamlEdit) apply(text []byte) []byte {
	var out bytes.Buffer
	line := 0
	for l := range bytes.Lines(text) {
		line++
		out.Write(l)
		if more := e.after[line]; more != "" {
			if !bytes.HasSuffix(l, []byte("\n")) {
				out.WriteByte('\n')
			}
			out.WriteString(more)
		}
	}
	return out.Bytes()
}

// setNamespace adds POD_NAMESPACE to the environment of a container, and reports whether the container has it then.
func (e *yamlEdit) setNamespace(container *yaml.Node) bool {
	variable := []string{
		"- name: POD_NAMESPACE", "  valueFrom:", "    fieldRef:", "      fieldPath: metadata.namespace",
	}
	env := child(container, "env")
	switch {
	case container.Style&yaml.FlowStyle != 0:
		return false
	case env == nil:
		name := child(container, "name")
		column := container.Content[0].Column
		e.insert(name.Line, column, append([]string{"env:"}, variable...)...)
		return true
	case env.Kind != yaml.SequenceNode:
		return false
	case slices.ContainsFunc(env.Content, func(v *yaml.Node) bool { return scalar(v, "name") == "POD_NAMESPACE" }):
		return true
	case env.Style&yaml.FlowStyle != 0 || len(env.Content) == 0:
		return false
	}
	for i, n := range container.Content {
		if n == env {
			e.insert(container.Content[i-1].Line, env.Column, variable...)
		}
	}
	return true
}

// setHTTPS makes a probe use TLS, and reports whether it could.
func (e *yamlEdit) setHTTPS(get *yaml.Node) bool {
	port := child(get, "port")
	if port == nil || get.Style&yaml.FlowStyle != 0 {
		return false
	}
	e.insert(port.Line, get.Content[0].Column, "scheme: HTTPS")
	return true
}
