// Package deploy has no code: the directory holds what runs a fleet on machines, which are
// Kubernetes manifests, units of systemd, a compose file and the Dockerfile of their image.
package deploy
