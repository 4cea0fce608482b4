// SPDX-License-Identifier: Apache-2.0
// nautilus completion: scripts by which bash and zsh complete commands, options and values.
//
// They are written from the commands themselves, so that they know what this tool knows: the words
// of a command are its sub-commands and options, the values of an option those that it accepts.
#include <fmt/format.h>

#include <algorithm>

#include "command.h"

namespace nautilus::tool {
namespace {

struct OptionWords {
  std::vector<std::string> names;  // "-o", "--output"
  std::vector<std::string> values;
  std::string description;
  bool takes_value = false;
};

// A command with those above it: "nautilus db list".
struct CommandWords {
  std::string path;
  std::string description;
  std::vector<std::pair<std::string, std::string>> commands;  // name, description
  std::vector<OptionWords> options;
  std::vector<std::string> values;  // of its positional arguments
  bool takes_files = false;
};

// The values of a member check stand in the option's type: `TEXT:{cuda,body}`.
std::vector<std::string> member_values(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const size_t begin = type.find('{');
  const size_t end = type.find('}', begin);
  if (begin == std::string::npos || end == std::string::npos) return {};
  return CLI::detail::split(type.substr(begin + 1, end - begin - 1), ',');
}

void add_words(const CLI::App& app, const std::string& path, std::vector<CommandWords>& out) {
  CommandWords words{.path = path,
                     .description = app.get_description(),
                     .commands = {},
                     .options = {},
                     .values = {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional() && !option->nonpositional()) {
      words.values = member_values(*option);
      words.takes_files |= words.values.empty();
      continue;
    }
    OptionWords o{.names = {},
                  .values = member_values(*option),
                  .description = option->get_description(),
                  .takes_value = option->get_items_expected_max() > 0};
    for (const std::string& name : option->get_snames()) o.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) o.names.push_back("--" + name);
    words.options.push_back(std::move(o));
  }
  const auto subcommands = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* s : subcommands)
    words.commands.emplace_back(s->get_name(), s->get_description());
  out.push_back(std::move(words));
  for (const CLI::App* s : subcommands) add_words(*s, path + " " + s->get_name(), out);
}

std::string joined_names(const CommandWords& c) {
  std::vector<std::string> names;
  for (const OptionWords& o : c.options) names.insert(names.end(), o.names.begin(), o.names.end());
  return fmt::format("{}", fmt::join(names, " "));
}

std::string subcommand_names(const CommandWords& c) {
  std::vector<std::string> names;
  for (const auto& [name, description] : c.commands) names.push_back(name);
  return fmt::format("{}", fmt::join(names, " "));
}

// Rows of a `case` over "COMMAND OPTION": first the options with known values, then the others
// that take one, for which file names are offered.
std::string value_cases(const std::vector<CommandWords>& all) {
  std::string known;
  std::string others;
  for (const CommandWords& c : all) {
    for (const OptionWords& o : c.options) {
      for (const std::string& name : o.names) {
        if (!o.values.empty()) {
          known +=
              fmt::format("    '{} {}') values='{}' ;;\n", c.path, name, fmt::join(o.values, " "));
        } else if (o.takes_value) {
          others += fmt::format("    '{} {}') files=1 ;;\n", c.path, name);
        }
      }
    }
  }
  return known + others;
}

std::string command_cases(const std::vector<CommandWords>& all) {
  std::string out;
  for (const CommandWords& c : all) {
    out += fmt::format("    '{}')\n", c.path);
    out += fmt::format("      commands='{}'\n", subcommand_names(c));
    out += fmt::format("      options='{}'\n", joined_names(c));
    if (!c.values.empty()) out += fmt::format("      words='{}'\n", fmt::join(c.values, " "));
    if (c.takes_files) out += "      takes_files=1\n";
    out += "      ;;\n";
  }
  return out;
}

// In bash `=` and `:` are words of their own; `--emit=cuda` arrives as three.
std::string bash_script(const std::vector<CommandWords>& all) {
  std::string paths;
  for (const CommandWords& c : all)
    paths += fmt::format("{}'{}'", paths.empty() ? "" : " | ", c.path);
  std::string out =
      "# Completion of nautilus for bash, written by `nautilus completion bash`. To use it:\n"
      "#   source <(nautilus completion bash)\n"
      "_nautilus() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} previous= path=nautilus k\n"
      "  local commands= options= words= values= files= takes_files=\n"
      "  for ((k = 1; k < COMP_CWORD; ++k)); do\n"
      "    case \"$path ${COMP_WORDS[k]}\" in\n";
  out += fmt::format("      {}) path+=\" ${{COMP_WORDS[k]}}\" ;;\n", paths);
  out +=
      "    esac\n"
      "  done\n"
      "  previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
      "  if [ \"$current\" = '=' ]; then\n"
      "    current=\n"
      "  elif [ \"$previous\" = '=' ] && ((COMP_CWORD > 1)); then\n"
      "    previous=${COMP_WORDS[COMP_CWORD - 2]}\n"
      "  fi\n"
      "  case \"$path $previous\" in\n";
  out += value_cases(all);
  out +=
      "  esac\n"
      "  COMPREPLY=()\n"
      "  if [ -n \"$values\" ]; then\n"
      "    COMPREPLY=($(compgen -W \"$values\" -- \"$current\"))\n"
      "    return\n"
      "  elif [ -n \"$files\" ]; then\n"
      "    mapfile -t COMPREPLY < <(compgen -f -- \"$current\")\n"
      "    return\n"
      "  fi\n"
      "  case \"$path\" in\n";
  out += command_cases(all);
  out +=
      "  esac\n"
      "  case \"$current\" in\n"
      "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$current\")) ;;\n"
      "    *)\n"
      "      COMPREPLY=($(compgen -W \"$commands $words\" -- \"$current\"))\n"
      "      if [ -n \"$takes_files\" ]; then\n"
      "        local file\n"
      "        while read -r file; do COMPREPLY+=(\"$file\"); done < <(compgen -f -- "
      "\"$current\")\n"
      "      fi\n"
      "      ;;\n"
      "  esac\n"
      "}\n"
      "complete -o filenames -o bashdefault -F _nautilus nautilus\n";
  return out;
}

// As one word of zsh, for `_describe` and `_values`: `name:description` with what they would take
// for signs of their own in front of a backslash.
std::string zsh_entry(const std::string& name, std::string description) {
  std::string text;
  for (const char c : description.substr(0, description.find('\n'))) {
    if (c == '\'') {
      text += "'\\''";
      continue;
    }
    if (c == ':' || c == '\\') text += '\\';
    text += c;
  }
  return fmt::format("'{}:{}'", name, text);
}

// What follows each command: its own commands, options and words.
std::string zsh_cases(const std::vector<CommandWords>& all) {
  std::string out;
  for (const CommandWords& c : all) {
    out += fmt::format("    '{}')\n", c.path);
    if (!c.commands.empty()) {
      out += "      commands=(\n";
      for (const auto& [name, description] : c.commands)
        out += fmt::format("        {}\n", zsh_entry(name, description));
      out += "      )\n";
    }
    out += "      options=(\n";
    for (const OptionWords& o : c.options) {
      for (const std::string& name : o.names)
        out += fmt::format("        {}\n", zsh_entry(name, o.description));
    }
    out += "      )\n";
    if (!c.values.empty()) out += fmt::format("      words_=({})\n", fmt::join(c.values, " "));
    if (c.takes_files) out += "      takes_files=1\n";
    out += "      ;;\n";
  }
  return out;
}

std::string zsh_script(const std::vector<CommandWords>& all) {
  std::string paths;
  for (const CommandWords& c : all)
    paths += fmt::format("{}'{}'", paths.empty() ? "" : "|", c.path);
  std::string out =
      "#compdef nautilus\n"
      "# Completion of nautilus for zsh, written by `nautilus completion zsh`. To use it:\n"
      "#   nautilus completion zsh > FOLDER/_nautilus    (a folder of $fpath)\n"
      "# or, after compinit:  source <(nautilus completion zsh)\n"
      "_nautilus() {\n"
      "  local current=$words[CURRENT] previous=$words[CURRENT-1] path_=nautilus word\n"
      "  local values= files= takes_files=\n"
      "  local -a commands options words_\n"
      "  for word in ${words[2,CURRENT-1]}; do\n"
      "    case \"$path_ $word\" in\n";
  out += fmt::format("      ({}) path_+=\" $word\" ;;\n", paths);
  out +=
      "    esac\n"
      "  done\n"
      "  if [[ $current == --*=* ]]; then\n"
      "    previous=${current%%=*}\n"
      "    compset -P '*='\n"
      "  fi\n"
      "  case \"$path_ $previous\" in\n";
  out += value_cases(all);
  out +=
      "  esac\n"
      "  if [[ -n $values ]]; then\n"
      "    compadd -- ${=values}\n"
      "    return\n"
      "  elif [[ -n $files ]]; then\n"
      "    _files\n"
      "    return\n"
      "  fi\n"
      "  case \"$path_\" in\n";
  out += zsh_cases(all);
  out +=
      "  esac\n"
      "  if [[ $current == -* ]]; then\n"
      "    _describe -o 'option' options\n"
      "    return\n"
      "  fi\n"
      "  (( $#commands )) && _describe 'command' commands\n"
      "  (( $#words_ )) && compadd -- $words_\n"
      "  [[ -n $takes_files ]] && _files\n"
      "  return 0\n"
      "}\n"
      "if [[ $funcstack[1] == _nautilus ]]; then _nautilus \"$@\"; else compdef _nautilus "
      "nautilus; "
      "fi\n";
  return out;
}

}  // namespace

void add_completion(CLI::App& app, int& exit_code) {
  auto shell = std::make_shared<std::string>();
  CLI::App* c =
      app.add_subcommand("completion", "Print a script by which a shell completes commands");
  c->add_option("SHELL", *shell, "bash or zsh")
      ->required()
      ->check(CLI::IsMember(std::vector<std::string>{"bash", "zsh"}));
  c->footer("Example: source <(nautilus completion bash)");
  c->callback([shell, &app, &exit_code] {
    std::vector<CommandWords> all;
    add_words(app, "nautilus", all);
    fmt::print("{}", *shell == "bash" ? bash_script(all) : zsh_script(all));
    exit_code = kOk;
  });
}

}  // namespace nautilus::tool
