"""The docs as a site (a hook of mkdocs): whatever a page links to is in it.

Pages link to files of the repository beside docs/: to the changelog, an example, settings.
There those links lead to the file; here to a page of the site, which this hook makes of it.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from urllib.parse import unquote

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
DOCS = "docs"
PAGES = ("CHANGELOG.md", "CONTRIBUTING.md")
"""Of the repository's own folder, taken up as they are. Its README is what the index is here."""
CODE = re.compile(r"^(```|~~~).*?^\1[ ]*$", re.M | re.S)
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
LANGUAGES = {".sh": "sh", ".py": "python", ".yaml": "yaml", ".yml": "yaml", ".json": "json"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Take up the repository's own pages, and a page for each file or folder that is linked to."""
    written = [(f"{DOCS}/{one.src_uri}", one.content_string) for one in files.documentation_pages()]
    for name in PAGES:
        text = (ROOT / name).read_text("utf-8")
        files.append(File.generated(config, name, content=_links(text, name, name)))
        written.append((name, text))
    for where, text in written:  # which grows by the pages that are made of linked ones
        for link in LINK.findall(CODE.sub("", text)):
            target = _target(where, link[1])
            if target is None or _page(target) != _source(target):
                continue
            if files.get_file_from_path(_source(target)) is None:
                files.append(File.generated(config, _source(target), content=_shown(target)))
                if (page := _written(target)) is not None:
                    written.append((page, (ROOT / page).read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead the links of a page to what stands for their files in the site."""
    uri = page.file.src_uri
    if uri in PAGES or uri.startswith("source/"):
        return markdown
    return _links(markdown, f"{DOCS}/{uri}", uri)


def _links(text: str, where: str, uri: str) -> str:
    """A text of the file `where`, its links leading from the page `uri`."""

    def led(match: re.Match[str]) -> str:
        target = _target(where, match[2])
        if target is None:
            return match[0]
        _, hash_, anchor = match[2].partition("#")
        there = posixpath.relpath(_page(target), posixpath.dirname(uri) or ".")
        return f"{match[1]}{there}{hash_}{anchor}{match[3]}"

    kept = 0
    parts = []
    for code in CODE.finditer(text):
        parts += [LINK.sub(led, text[kept : code.start()]), code[0]]
        kept = code.end()
    return "".join([*parts, LINK.sub(led, text[kept:])])


def _target(where: str, link: str) -> str | None:
    """The file in the repository that a link of the file `where` leads to; None: none of it."""
    path = unquote(link.partition("#")[0])
    if not path or "://" in path or path.startswith("mailto:"):
        return None
    return posixpath.normpath(posixpath.join(posixpath.dirname(where), path))


def _page(target: str) -> str:
    """What stands for a file of the repository in the site, from its top."""
    if target == "README.md":
        return "index.md"
    if target in PAGES:
        return target
    if target == DOCS or target.startswith(f"{DOCS}/"):
        inside = posixpath.relpath(target, DOCS)
        return posixpath.join(inside, "README.md") if (ROOT / target).is_dir() else inside
    return _source(target)


def _source(target: str) -> str:
    return f"source/{target}.md"


def _written(target: str) -> str | None:
    """The page that stands in the repository for a file or folder: itself, or its README."""
    page = f"{target}/README.md" if (ROOT / target).is_dir() else target
    return page if page.endswith(".md") and (ROOT / page).exists() else None


def _shown(target: str) -> str:
    """The page of a file, or of a folder: what is written of it, and the names of what is in it."""
    path, page = ROOT / target, _written(target)
    text = "---\nsearch:\n  exclude: true\n---\n"
    if page is None:
        text += f"# `{target}`\n\n"
    else:
        text += _links((ROOT / page).read_text("utf-8"), page, _source(target))
    if path.is_dir():
        names = sorted(
            one.relative_to(path).as_posix()
            for one in path.rglob("*")
            if one.is_file() and not {"__pycache__", "node_modules"} & {*one.parts}
        )
        return text + f"\n\nIn the repository's `{target}/`:\n\n" + _listed(names)
    if page is None:
        language = LANGUAGES.get(path.suffix, "text")
        code = path.read_text("utf-8").rstrip()
        text += f"A file of the repository:\n\n````{language}\n{code}\n````\n"
    return text


def _listed(names: list[str]) -> str:
    return "".join(f"- `{name}`\n" for name in names)
