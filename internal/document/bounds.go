package document

import (
	"errors"

	"go.yaml.in/yaml/v4"
)

// The limits of a document, so that a file can exhaust neither memory nor time: an alias stands for
// all that it refers to, aliases of aliases grow without bound, and every key is compared with
// every other one of its mapping.
const (
	// maxSource is how many bytes a document may have.
	maxSource = 4 << 20
	// maxKeys is how many keys a mapping may have.
	maxKeys = 5000
	// maxDepth is how deeply values may be nested.
	maxDepth = 100
	// maxNodes is how many values a document may have once every alias is expanded.
	maxNodes = 1 << 20
	// maxExpanded is how many bytes of scalars it may have then.
	maxExpanded = 64 << 20
	// maxProblems is how many problems of a document are reported.
	maxProblems = 50
)

// A date that was not put in quotes is the text that was written.
const (
	timestampTag = "!!timestamp"
	textTag      = "!!str"
)

var errTooDeep = errors.New("values are nested too deeply")

// expansion is how large a value is once its aliases are expanded.
type expansion struct{ nodes, bytes, depth int }

// measure computes the size of a document. A node that several aliases refer to is visited once.
type measure struct {
	document *Document
	known    map[*yaml.Node]expansion
	open     map[*yaml.Node]bool
}

// bounded refuses a document that is too large or too deep once its aliases are expanded.
func (d *Document) bounded(root *yaml.Node) error {
	m := measure{document: d, known: map[*yaml.Node]expansion{}, open: map[*yaml.Node]bool{}}
	_, err := m.of(root, 0)
	return err
}

func (m *measure) of(node *yaml.Node, depth int) (expansion, error) {
	if size, known := m.known[node]; known {
		return size, m.check(node, size, depth)
	}
	if m.open[node] {
		return expansion{}, m.document.at(node.Line, node.Column, "an alias refers to a value that contains it")
	}
	if node.ShortTag() == timestampTag {
		node.Tag = textTag
	}
	size := expansion{nodes: 1, bytes: len(node.Value)}
	if err := m.check(node, size, depth); err != nil {
		return size, err
	}
	if node.Kind == yaml.MappingNode && len(node.Content) > 2*maxKeys {
		return size, m.document.at(node.Line, node.Column, "a mapping has more than %d keys", maxKeys)
	}
	m.open[node] = true
	defer delete(m.open, node)
	inner := node.Content
	if node.Kind == yaml.AliasNode {
		inner = []*yaml.Node{node.Alias}
	}
	for _, child := range inner {
		of, err := m.of(child, depth+1)
		if err != nil {
			return size, err
		}
		size.nodes += of.nodes
		size.bytes += of.bytes
		size.depth = max(size.depth, of.depth+1)
		if err := m.check(node, size, depth); err != nil {
			return size, err
		}
	}
	m.known[node] = size
	return size, nil
}

func (m *measure) check(node *yaml.Node, size expansion, depth int) error {
	switch {
	case depth+size.depth > maxDepth:
		return m.document.at(node.Line, node.Column, "%s", errTooDeep)
	case size.nodes > maxNodes || size.bytes > maxExpanded:
		return m.document.at(node.Line, node.Column, "the document is too large with its aliases expanded")
	default:
		return nil
	}
}
