package calls

// Writer appends calls to a record.
type Writer struct{}

// Append adds a call with the bodies of its request and of its reply.
func (w *Writer) Append(Call, []byte, []byte) error { return nil }
