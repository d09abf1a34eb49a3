package document

import "go.yaml.in/yaml/v4"

// Parts returns the elements of a list at a path, each as a separate document whose problems keep
// their positions in the file. It is nil where there is no list.
func (d *Document) Parts(path ...string) []*Document {
	list := d.find(path)
	if list == nil || list.Kind != yaml.SequenceNode {
		return nil
	}
	var parts []*Document
	for _, node := range list.Content {
		root := &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{node}}
		parts = append(parts, &Document{
			name:   d.name,
			source: d.source,
			line:   d.line,
			root:   root,
		})
	}
	return parts
}
