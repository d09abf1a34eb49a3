// Package deploy holds what runs a fleet on machines: Kubernetes manifests, units of systemd, a
// compose file and the Dockerfile of their image. Its tests check them with their own tools.
package deploy
