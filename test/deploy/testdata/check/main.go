// Command check reads Kubernetes manifests with the types of Kubernetes and compose files with the
// library of Docker Compose, both strictly. It is a module of its own, so that fit does not depend
// on either.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/compose-spec/compose-go/v2/cli"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	failed := false
	for _, name := range os.Args[1:] {
		err := kubernetes(name)
		if strings.HasSuffix(name, "compose.yaml") {
			err = compose(name)
		}
		if err != nil {
			failed = true
			fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		}
	}
	if failed {
		os.Exit(1)
	}
}

func compose(name string) error {
	options, err := cli.NewProjectOptions([]string{name}, cli.WithoutEnvironmentResolution)
	if err != nil {
		return err
	}
	project, err := options.LoadProject(context.Background())
	if err == nil && len(project.Services) == 0 {
		err = errors.New("no services")
	}
	return err
}

// kubernetes decodes every document of a manifest into the type of its kind.
func kubernetes(name string) error {
	content, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	for i, document := range bytes.Split(content, []byte("\n---\n")) {
		if err := decode(document); err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("document %d: %w", i+1, err)
		}
	}
	return nil
}

func decode(document []byte) error {
	var about meta.TypeMeta
	if err := yaml.Unmarshal(document, &about); err != nil {
		return err
	}
	kinds := map[string]any{
		"v1/Service":          &core.Service{},
		"apps/v1/Deployment":  &apps.Deployment{},
		"apps/v1/StatefulSet": &apps.StatefulSet{},
	}
	into, known := kinds[about.APIVersion+"/"+about.Kind]
	if !known {
		return fmt.Errorf("kind %s of %s is not expected", about.Kind, about.APIVersion)
	}
	if err := yaml.UnmarshalStrict(document, into); err != nil {
		return err
	}
	return selects(into)
}

// selects makes sure that what a workload selects is what it makes.
func selects(object any) error {
	var selector *meta.LabelSelector
	var pod core.PodTemplateSpec
	switch o := object.(type) {
	case *apps.Deployment:
		selector, pod = o.Spec.Selector, o.Spec.Template
	case *apps.StatefulSet:
		selector, pod = o.Spec.Selector, o.Spec.Template
	default:
		return nil
	}
	chosen, err := meta.LabelSelectorAsSelector(selector)
	if err != nil {
		return err
	}
	if len(pod.Spec.Containers) == 0 || pod.Labels == nil {
		return errors.New("no containers or labels")
	}
	for key, value := range selector.MatchLabels {
		if pod.Labels[key] != value {
			return fmt.Errorf("its selector %s does not select its pods", chosen)
		}
	}
	return nil
}
