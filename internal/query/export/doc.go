// Package export writes traces in other forms: a structured document, a Markdown page,
// OpenTelemetry spans.
package export
