//go:build unix && !linux

package sandbox

import (
	"context"
	"errors"
	"net"
)

// Containers need Linux: their programs are handed descriptors, which no virtual machine passes on.
var errContainersNeedLinux = errors.New("containers need Linux")

const treeContainment = ProcessGroup

type room struct {
	nice       int
	unfiltered bool
}

func (*room) written() []string { return nil }

func (c *Container) enter(context.Context, Isolation) (*room, error) {
	return nil, errContainersNeedLinux
}

// Open returns an error.
func (c *Container) Open(context.Context, int, func(net.Listener) error) (func(), error) {
	return nil, errContainersNeedLinux
}

// Dial returns an error.
func (c *Container) Dial(context.Context, int) (net.Conn, error) { return nil, errContainersNeedLinux }

// Close does nothing.
func (c *Container) Close() error { return nil }

// Start returns an error.
func (c *Container) Start(context.Context, Isolation) error { return errContainersNeedLinux }

// Left finds nothing.
func (c *Container) Left(context.Context) ([]string, error) { return nil, nil }

// EndLeft does nothing.
func (c *Container) EndLeft(context.Context) error { return nil }

// Layers reports that containers are not made here.
func (e *Engine) Layers() bool { return false }

// Changed returns an error.
func (c *Container) Changed(context.Context) ([]string, error) { return nil, errContainersNeedLinux }

func isStatic(string) bool { return false }
