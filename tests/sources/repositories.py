"""Git repositories for tests, made with dulwich so that no git program is needed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from dulwich.objects import Blob, Commit, ObjectID, Tag, Tree
from dulwich.refs import Ref
from dulwich.repo import Repo

WHO = b"A <a@example.invalid>"

Entry = bytes | tuple[int, bytes]


def tree_of(repository: Repo, files: Mapping[str, Entry]) -> ObjectID:
    """Store ``files`` as a tree; a tuple is a mode and the content, or a hash for a submodule."""
    tree = Tree()
    folders: dict[str, dict[str, Entry]] = {}
    for name, entry in files.items():
        head, separator, rest = name.partition("/")
        if separator:
            folders.setdefault(head, {})[rest] = entry
            continue
        mode, content = entry if isinstance(entry, tuple) else (0o100644, entry)
        if mode == 0o160000:
            tree.add(name.encode(), mode, ObjectID(content))
            continue
        blob = Blob.from_string(content)
        repository.object_store.add_object(blob)
        tree.add(name.encode(), mode, blob.id)
    for head, inside in folders.items():
        tree.add(head.encode(), 0o040000, tree_of(repository, inside))
    repository.object_store.add_object(tree)
    return tree.id


def commit(
    repository: Repo,
    files: Mapping[str, Entry],
    parents: tuple[ObjectID, ...] = (),
    branch: str = "main",
) -> ObjectID:
    made = Commit()
    made.tree = tree_of(repository, files)
    made.parents = list(parents)
    made.author = made.committer = WHO
    made.author_time = made.commit_time = 1_600_000_000
    made.author_timezone = made.commit_timezone = 0
    made.message = b"change"
    repository.object_store.add_object(made)
    repository.refs[Ref(b"refs/heads/" + branch.encode())] = made.id
    repository.refs.set_symbolic_ref(Ref(b"HEAD"), Ref(b"refs/heads/main"))
    return made.id


def annotated_tag(repository: Repo, name: str, target: ObjectID) -> ObjectID:
    tag = Tag()
    tag.object = (Commit, target)
    tag.name = name.encode()
    tag.tagger = WHO
    tag.tag_time = 1_600_000_000
    tag.tag_timezone = 0
    tag.message = b"release"
    repository.object_store.add_object(tag)
    repository.refs[Ref(b"refs/tags/" + name.encode())] = tag.id
    return tag.id


def new_repository(folder: Path) -> Repo:
    folder.mkdir(parents=True, exist_ok=True)
    return Repo.init(str(folder))
