// CoreDNS with the plugins that a small cluster needs. Its own main brings some fifty, three clouds' clients among them,
// and takes minutes to compile.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
)

func main() {
	// The order in which a query passes them.
	dnsserver.Directives = []string{"bind", "ready", "errors", "cache", "kubernetes", "forward"}
	coremain.Run()
}
