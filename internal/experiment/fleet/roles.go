package fleet

import (
	"fmt"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

// permissions are the subjects that a role may publish and subscribe to.
type permissions struct{ publish, subscribe []string }

// permit returns the permissions of a role, for the member with a public key. Requests to a server
// name the subject of the answer freely, so what a member could have copied into a store by an
// answer is recognised where it is read (see copied).
//
// Workers and observers may not make consumers: a consumer delivers to any subject.
func permit(role, key string) permissions {
	inbox := inboxPrefix(key) + ".>"
	reads := func(streams ...string) []string {
		var list []string
		for _, name := range streams {
			get := "$JS.API.DIRECT.GET." + name
			list = append(list, "$JS.API.STREAM.INFO."+name, get, get+".>")
		}
		return list
	}
	switch role {
	case RoleCoordinator:
		return permissions{
			publish: []string{
				"$JS.API.>", "$JS.ACK.>", "$JS.FC.>", "$KV." + fleetBucket + ".>",
				"$KV." + workersBucket + "." + livesPrefix + "*", "$O." + treesBucket + ".>", "fit.work.>",
				cancelSubject("*"), doneSubject("*", markToken, markToken),
			},
			subscribe: []string{inbox, eventSubject("*", "*")},
		}
	case RoleWorker:
		return permissions{
			publish: append(reads("KV_"+fleetBucket, "KV_"+workersBucket, "OBJ_"+treesBucket),
				"$JS.API.CONSUMER.INFO.*."+consumerName, "$JS.API.CONSUMER.MSG.NEXT.*."+consumerName,
				"$JS.ACK.*."+consumerName+".>", "$KV."+workersBucket+"."+key+".*",
				doneSubject("*", key, "*"), fileSubject("*", key, "*"), eventSubject("*", key)),
			subscribe: []string{inbox, subjectPrefix + ">", cancelSubject("*")},
		}
	default:
		return permissions{
			publish: append(reads("KV_"+fleetBucket, "KV_"+workersBucket),
				"$JS.API.CONSUMER.INFO.*."+consumerName),
			subscribe: []string{inbox},
		}
	}
}

// inboxPrefix begins the subjects of the answers to a member, which no other one can read.
func inboxPrefix(key string) string { return "_INBOX." + key }

// users returns the members as the server knows them.
func (k *hubKeys) users() ([]*server.NkeyUser, error) {
	var users []*server.NkeyUser
	for _, m := range k.Members {
		key, err := m.Key()
		if err != nil {
			return nil, fmt.Errorf("key %s: %w", m.Name, err)
		}
		p := permit(m.Role, key)
		users = append(users, &server.NkeyUser{Nkey: key, Permissions: &server.Permissions{
			Publish:   &server.SubjectPermission{Allow: p.publish},
			Subscribe: &server.SubjectPermission{Allow: p.subscribe},
		}})
	}
	return users, nil
}

// Permissions returns the members of a hub directory as the configuration of an external server
// (conf), or as commands of its tool (nsc), and writes their URLs.
func Permissions(dir, address, form string) (string, error) {
	keys, err := hubSecrets(dir)
	if err != nil {
		return "", err
	}
	if _, _, err := splitAddress(address); err != nil {
		return "", fmt.Errorf("address %q: %w", address, err)
	}
	host, _, _ := splitAddress(address)
	join := joinURL{Address: address, External: true, TLS: !isLoopback(host)}
	if err := keys.writeURLs(dir, join); err != nil {
		return "", err
	}
	var text strings.Builder
	if form == "conf" {
		text.WriteString("authorization {\n  users = [\n")
	}
	for _, m := range keys.Members {
		key, err := m.Key()
		if err != nil {
			return "", err
		}
		p := permit(m.Role, key)
		if form == "conf" {
			fmt.Fprintf(&text, "    { # %s: %s\n      nkey: %s\n      permissions {\n        publish: {allow: %s}\n"+
				"        subscribe: {allow: %s}\n      }\n    }\n", m.Name, m.Role, key, quoted(p.publish),
				quoted(p.subscribe))
			continue
		}
		fmt.Fprintf(&text, "nsc add user --name '%s' --public-key %s --allow-pub '%s' --allow-sub '%s'\n", m.Name, key,
			strings.Join(p.publish, ","), strings.Join(p.subscribe, ","))
	}
	if form == "conf" {
		text.WriteString("  ]\n}\n")
	}
	return text.String(), nil
}

func quoted(subjects []string) string { return `["` + strings.Join(subjects, `", "`) + `"]` }
