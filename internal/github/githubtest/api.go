package githubtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const longestComment = 65536

func (s *Site) addIssueComment(r *http.Request, body []byte) (int, any) {
	on := s.subject("issue", r.PathValue("number"))
	var said struct{ Body string }
	switch err := json.Unmarshal(body, &said); {
	case on == nil || !strings.EqualFold(r.PathValue("owner")+"/"+r.PathValue("name"), Repository):
		return notFound()
	case s.isLocked(on):
		return http.StatusForbidden, map[string]any{"message": "Unable to create comment because issue is locked."}
	case err != nil || said.Body == "" || utf8.RuneCountInString(said.Body) > longestComment:
		return http.StatusUnprocessableEntity, map[string]any{"message": "Validation Failed"}
	}
	return http.StatusCreated, s.object(on, s.comment(on, said.Body))
}

// pageSize is smaller than that of GitHub, so that there are pages.
const pageSize = 3

func (s *Site) issueComments(w http.ResponseWriter, r *http.Request) {
	on := s.subject("issue", r.PathValue("number"))
	if on == nil {
		status, said := notFound()
		answer(w, status, said)
		return
	}
	since, _ := time.Parse(time.RFC3339, r.URL.Query().Get("since"))
	page, _ := strconv.Atoi(r.URL.Query().Get("page"))
	list := []any{}
	more := false
	for i, said := range s.written(on) {
		switch at := max(page-1, 0) * pageSize; {
		case said.updated.Before(since), i < at:
		case i < at+pageSize:
			list = append(list, s.object(on, &said))
		default:
			more = true
		}
	}
	if more {
		query := r.URL.Query()
		query.Set("page", strconv.Itoa(max(page, 1)+1))
		w.Header().Set("Link", fmt.Sprintf(`<%s%s?%s>; rel="next"`, s.http.URL, r.URL.Path, query.Encode()))
	}
	answer(w, http.StatusOK, list)
}

// written are the comments that are there.
func (s *Site) written(on *Subject) []Comment {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Comment
	for _, said := range on.comments {
		if !said.deleted {
			list = append(list, *said)
		}
	}
	return list
}

func (s *Site) isLocked(on *Subject) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return on.locked
}

func (s *Site) dispatch(r *http.Request, body []byte) (int, any) {
	var d Dispatch
	if err := json.Unmarshal(body, &d); err != nil || d.Ref == "" || len(d.Inputs) > 10 {
		return http.StatusUnprocessableEntity, map[string]any{"message": "Unexpected inputs provided"}
	}
	if size := len(fmt.Sprint(d.Inputs)); size > longestComment {
		return http.StatusUnprocessableEntity, map[string]any{"message": "inputs are too large."}
	}
	d.File = r.PathValue("file")
	s.mu.Lock()
	s.dispatched = append(s.dispatched, d)
	s.mu.Unlock()
	return http.StatusNoContent, nil
}

// runs lists what was started, for workflows whose run-name is the correlation id.
func (s *Site) runs(w http.ResponseWriter, r *http.Request) {
	runs := []any{}
	for i, d := range s.Dispatched() {
		if d.File == r.PathValue("file") {
			runs = append(runs, map[string]any{
				"id": i + 1, "name": "Discussion", "display_title": d.Inputs["correlation_id"],
				"event": "workflow_dispatch", "status": "queued", "conclusion": nil,
			})
		}
	}
	answer(w, http.StatusOK, map[string]any{"total_count": len(runs), "workflow_runs": runs})
}

func (s *Site) graphQL(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Query     string
		Variables struct {
			Subject, Body string
			Before        *string
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		answer(w, http.StatusBadRequest, map[string]any{"message": "Problems parsing JSON"})
		return
	}
	on := s.subject("discussion", asked.Variables.Subject)
	switch {
	case on == nil:
		answer(w, http.StatusOK, map[string]any{"data": nil, "errors": []any{map[string]any{
			"type":    "NOT_FOUND",
			"message": "Could not resolve to a node with the global id of " + asked.Variables.Subject,
		}}})
	case strings.HasPrefix(asked.Query, "mutation") && strings.Contains(asked.Query, "addDiscussionComment"):
		s.writes(func(*http.Request, []byte) (int, any) {
			said := s.comment(on, asked.Variables.Body)
			return http.StatusOK, map[string]any{"data": map[string]any{"addDiscussionComment": map[string]any{
				"comment": map[string]any{"id": "DC_" + strconv.Itoa(said.id)},
			}}}
		})(w, r)
	default:
		answer(w, http.StatusOK, map[string]any{"data": map[string]any{"node": map[string]any{
			"comments": s.discussionComments(on, asked.Variables.Before),
		}}})
	}
}

// discussionComments is the page of comments before a cursor.
func (s *Site) discussionComments(on *Subject, before *string) any {
	list := s.written(on)
	end := len(list)
	if before != nil {
		end, _ = strconv.Atoi(*before)
	}
	begin := max(0, end-pageSize)
	nodes := []any{}
	for _, said := range list[begin:end] {
		nodes = append(nodes, map[string]any{"body": said.body, "createdAt": said.created})
	}
	return map[string]any{
		"nodes":    nodes,
		"pageInfo": map[string]any{"hasPreviousPage": begin > 0, "startCursor": strconv.Itoa(begin)},
	}
}

// payload is that of a webhook. A payload without a comment is that of the subject itself.
func (s *Site) payload(on *Subject, said *Comment, action string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	by := on.text.by
	payload := map[string]any{
		"action":     action,
		on.kind:      s.subjectObject(on),
		"repository": repository(),
	}
	if said != nil {
		payload["comment"] = s.object(on, said)
		by = said.by
	}
	payload["sender"] = by.object()
	content, err := json.Marshal(payload)
	if err != nil {
		s.t.Error(err)
	}
	return content
}

func (u User) object() any {
	kind := "User"
	if u.Bot {
		kind = "Bot"
	}
	return map[string]any{
		"login": u.Login, "id": 21031067 + len(u.Login), "node_id": "MDQ6VXNlcjIxMDMxMDY3", "gravatar_id": "",
		"url": "https://api.github.com/users/" + u.Login, "html_url": "https://github.com/" + u.Login,
		"type": kind, "site_admin": false,
	}
}

func repository() any {
	owner, name, _ := strings.Cut(Repository, "/")
	return map[string]any{
		"id": 186853002, "node_id": "MDEwOlJlcG9zaXRvcnkxODY4NTMwMDI=", "name": name, "full_name": Repository,
		"private": false, "owner": User{Login: owner}.object(), "html_url": "https://github.com/" + Repository,
		"url": "https://api.github.com/repos/" + Repository, "description": nil, "fork": false,
		"has_issues": true, "default_branch": "main",
	}
}

func (s *Site) subjectObject(on *Subject) any {
	object := s.object(on, on.text).(map[string]any)
	object["number"], object["title"] = on.number, on.title
	object["node_id"], object["state"], object["locked"] = on.node(), "open", on.locked
	object["comments"], object["active_lock_reason"] = len(on.comments), nil
	if on.kind == "discussion" {
		object["category"] = map[string]any{"id": 32809314, "name": "General", "slug": "general"}
	} else {
		object["labels"], object["assignees"], object["milestone"] = []any{}, []any{}, nil
	}
	return object
}

// object is a comment, as webhooks and REST show it.
func (s *Site) object(on *Subject, said *Comment) any {
	return map[string]any{
		"id": said.id, "node_id": "MDEyOkNvbW1lbnQ" + strconv.Itoa(said.id), "user": said.by.object(),
		"html_url":   fmt.Sprintf("https://github.com/%s/%ss/%d#comment-%d", Repository, on.kind, on.number, said.id),
		"created_at": said.created.Format(time.RFC3339), "updated_at": said.updated.Format(time.RFC3339),
		"author_association": said.by.Association, "body": said.body, "parent_id": nil,
		"reactions": map[string]any{"total_count": 0, "+1": 0, "-1": 0},
	}
}
