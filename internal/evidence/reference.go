package evidence

// ReferenceOf describes a reference solution: its size as that of attempts is counted, and the
// files that it changes. Bounds that the task's author gave are written over it.
func ReferenceOf(task *Task, diff []byte) *Reference {
	f := facts{task: task, classes: newClassifier(task), patch: ParseDiff(diff)}
	ref := &Reference{SHA256: digestOf(diff), Patch: string(diff)}
	for _, change := range f.changes() {
		ref.Files = append(ref.Files, change.Path)
		if change.Class == ClassSource {
			ref.MaxFiles++
			ref.MaxLines += change.Added + change.Removed
		}
	}
	return ref
}
