// Package deploy checks what runs a fleet on machines, in the directory deploy, with the tools that
// read it: Kubernetes manifests, units of systemd and a compose file.
package deploy
